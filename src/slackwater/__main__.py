"""`python -m slackwater` is the command line."""

from slackwater.tools.cli.main import main

main()
