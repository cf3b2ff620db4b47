"""Which filesystem holds a path, so that SQLite files are kept off those whose locks cannot be trusted."""

from pathlib import Path

from lapledger.ledger.errors import UserError

NETWORK = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "glusterfs",
        "gfs2",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
    }
    | {"ocfs2", "orangefs", "pvfs2", "smb", "smb2", "smb3", "smbfs"}
    | {"fuse.ceph", "fuse.davfs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"}
)


def filesystem_of(path: Path, mounts: str) -> str:
    """The filesystem type of a resolved path, from the text of /proc/mounts; empty when no mount covers it."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(fields[1].encode().decode("unicode_escape"))
        if len(point.parts) >= best and path.is_relative_to(point):  # a later mount hides an earlier one
            best, kind = len(point.parts), fields[2]
    return kind


def refuse_network(path: Path) -> None:
    """UserError when `path` lies on a network filesystem, where SQLite's locks and syncs are not reliable."""
    mounts = Path("/proc/mounts")
    kind = filesystem_of(path.resolve(), mounts.read_text(errors="replace")) if mounts.exists() else ""
    if kind in NETWORK:
        raise UserError(
            f"{path} lies on a network filesystem ({kind}), where file locks are not reliable; choose a local folder"
        )
