"""Public queries over HTTP, gRPC and pages: released data only (if_product_query)."""
