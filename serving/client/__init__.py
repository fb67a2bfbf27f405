"""Python clients of the service, synchronous and asyncio. They need only httpx and numpy."""

from serving.client.calls import Decision, Embedding, Plan, ServiceError
from serving.client.client import AsyncClient, Client
from serving.client.held import HeldController, HeldMachine, HeldPlan

__all__ = [
    "AsyncClient",
    "Client",
    "Decision",
    "Embedding",
    "HeldController",
    "HeldMachine",
    "HeldPlan",
    "Plan",
    "ServiceError",
]
