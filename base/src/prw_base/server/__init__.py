"""Parts for programs that serve: database, migrations, gRPC server; installed with the extra `server`."""
