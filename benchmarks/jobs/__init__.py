"""The jobs. Each function gets ready for a file and gives what is timed: a call that returns the result.

What is imported inside of the call counts in the first call of a process.
"""
