"""Python clients of the service: one that waits, and one for asyncio. They need httpx and numpy
only."""

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
