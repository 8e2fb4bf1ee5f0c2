"""The world as it is: sockets, signals, the clock, standard error. Carries out what nodes decide."""
