"""The command line: every command is a client of REST, over the network or in this process."""
