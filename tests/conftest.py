"""What holds for all tests."""

import signal

# A shell ignores Ctrl-C for what it starts in the background, and every process below inherits that; the tests that
# interrupt a search need it back.
signal.signal(signal.SIGINT, signal.default_int_handler)
