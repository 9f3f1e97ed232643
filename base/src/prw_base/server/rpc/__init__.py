"""The gRPC server that every service here is served by.

A call passes, in this order: the limit on calls at once; the table of errors around everything;
access (token to Principal, the method's declaration); the caller's deadline; validation of each
request message. Streams are authorised again while they are open.
"""

from prw_base.server.rpc.access import Access, Authenticate, UndeclaredMethod
from prw_base.server.rpc.layers import Context
from prw_base.server.rpc.server import RpcServer, RpcSettings

__all__ = ["Access", "Authenticate", "Context", "RpcServer", "RpcSettings", "UndeclaredMethod"]
