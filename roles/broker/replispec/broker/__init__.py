"""The broker: it keeps a commit log, as master or as replica, and serves those who write and read it."""
