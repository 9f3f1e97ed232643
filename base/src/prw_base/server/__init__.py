"""Parts for programs that serve: database, migrations, gRPC server (the extra ``server``)."""
