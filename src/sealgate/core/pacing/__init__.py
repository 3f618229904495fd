"""The pacing of one API key, in virtual time: who may be sent when, under a limit that nobody published."""
