"""What people run beside a job: the command line, dead letters, the lateness report, the simulator, the demo."""
