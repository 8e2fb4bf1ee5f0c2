"""The agreement of a group on one log, as a pure core: what it is told comes in, what is to be done goes out.

In come messages of other members, proposals, the time, and that something is on the disk; out goes what to
persist, then to send, then to apply. Begin with `core`, which is what others see of a member; `inside` steps
the generated machine `member` and does what it says. `log` is the log in memory, `snapshots` what may replace
its beginning, `members` who the group is, `followers` what a leader knows of each follower, `reads` the
questions that wait, `ready` what is handed out, `rules` the algorithms that the machine calls. Nothing here
knows what an entry means, or who runs it: any role whose state must survive the loss of a minority of its
processes may.
"""
