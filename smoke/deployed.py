"""Whether the content that was deployed is what the stack file says: a proof of one must not stand for the other."""

from rules import names
from settings.content import content_digest
from settings.settings import Settings
from smoke.cluster import Cluster
from smoke.errors import PermanentError


async def other_content(settings: Settings, cluster: Cluster) -> str | None:
    """The digest of what was deployed as a whole, where it is another one; None also where none was left. Raises SmokeError."""
    config_map = await cluster.get(cluster.path("configmaps", names.DEPLOYED_CONTENT))
    deployed = ((config_map or {}).get("data") or {}).get(names.CONTENT_KEY)
    return deployed if deployed and deployed != content_digest(settings) else None


async def refuse_other_content(settings: Settings, stack: str, cluster: Cluster) -> None:
    """Raises PermanentError where images, model revisions or engine settings of the stack file were not deployed."""
    if deployed := await other_content(settings, cluster):
        raise PermanentError(
            f"Pulumi.{stack}.yaml has content {content_digest(settings)}, and {deployed} is deployed: "
            "images, model revisions or engine settings differ",
            f"pulumi up -s {stack} first, or check out the stack file that was deployed",
        )
