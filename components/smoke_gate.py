"""A release counts as done when smoke has shown it to work: the digest is stored only after that."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pulumi

from components.context import Context


class Proof(Protocol):
    """What came out: whether the release works, and the text for the user."""

    @property
    def passed(self) -> bool: ...

    @property
    def text(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class SmokeGateArgs:
    """What is gated, and by what."""

    release: pulumi.Input[str]
    """Digest over every object of the stack; not secret."""
    prove: Callable[[str], Awaitable[Proof]]
    """Is given the digest; runs only on create and update, never in a preview."""
    after: Sequence[pulumi.Resource] = ()
    """What must be ready first."""
    skip: bool = False
    nonce: str = ""


@dataclass(frozen=True, kw_only=True)
class SmokeGateResources:
    """The stored digest."""

    stash: pulumi.Stash


class SmokeGate(pulumi.ComponentResource):
    """Smoke in a hook *before* the digest is stored: a failure stores nothing, so the next `up` proves again.

    An after-hook that fails would be green on the next run (pulumi/pulumi#21899).
    """

    resources: SmokeGateResources

    def __init__(
        self, name: str, args: SmokeGateArgs, context: Context, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("moonstack:proof:SmokeGate", name, {"stack": context.stack}, opts)
        self._args = args
        self.resources = SmokeGateResources(stash=self._create_stash(name))
        self.register_outputs({"release": args.release})

    def _create_stash(self, name: str) -> pulumi.Stash:
        args = self._args
        hook = pulumi.ResourceHook(f"{name}-prove", self.prove)
        hooks = None if args.skip else pulumi.ResourceHookBinding(before_create=[hook], before_update=[hook])
        stored: dict[str, Any] = {
            "release": args.release,
            "nonce": args.nonce,
            "proof": "skipped" if args.skip else "smoke",
        }
        return pulumi.Stash(
            name, input=stored, opts=pulumi.ResourceOptions(parent=self, depends_on=list(args.after), hooks=hooks)
        )

    async def prove(self, _: pulumi.ResourceHookArgs) -> None:
        """Raises RunError with the failure's text, which the engine shows as it is."""
        release = await pulumi.Output.from_input(self._args.release).future()
        proof = await self._args.prove(release or "")
        if not proof.passed:
            raise pulumi.RunError(proof.text)
        pulumi.log.info(proof.text, self)
