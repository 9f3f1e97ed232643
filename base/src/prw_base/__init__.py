"""What every PRW program needs: the command, settings, logs, and with the extra `server` the server parts."""
