"""`python -m slackwater` is the command line."""

from slackwater.cli.main import main

main()
