"""Working on what a spool holds: reading it again, looking at it, mending it, giving it to other tools."""
