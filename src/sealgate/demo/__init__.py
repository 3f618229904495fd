"""`sealgate demo`: four bots at the sandbox, with Sealgate and without, all in one process.

Pure:
tally  what is counted, and the contrast at the end

Shell:
bots   the bots, and their way to the exchange
views  what the user sees: live, in lines, at the end
show   the demo from start to end
"""
