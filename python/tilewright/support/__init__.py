"""What all other modules share and what knows no programs: checks of arguments, messages, names, the machine."""
