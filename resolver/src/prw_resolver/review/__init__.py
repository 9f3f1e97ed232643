"""Cases for what no rule may decide, and the decisions of persons."""
