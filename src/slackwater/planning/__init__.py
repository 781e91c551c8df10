"""From definitions to a plan: row functions and their schemas, the planner, column pruning, `explain`."""
