"""The machine and the people at it: clock and chance, timers, tasks, descriptors, words.

Pure:
clocks    one reading of this machine's clocks
findings  one line of a report: cause and fix
nearest   which of the valid names was meant

Shell:
system      the one place that reads clocks and draws random numbers
aside       runs what takes milliseconds beside the loop
alarm       a deadline that is moved at no cost
background  tasks beside the requests, and the failures nobody awaits
loop        runs a coroutine as the whole program
look_up     the addresses of a host name, in a thread of its own
paths       who could replace a file
new_files   files for their owner alone: all, or none
process     descriptors, memory, core dumps, users, systemd
terminal    what is printed for people
"""
