"""A root with a few packages of this machine and no others, in which packages are installed and run.

debootstrap would make one, too, but fetches what is on this machine already, in a minute and more."""

import re
import subprocess
from pathlib import Path

# Packages that README's commands need. dpkg is run from outside.
NEEDED = ("dash", "coreutils", "grep", "sed", "diffutils")


def _query(form, *words):
    done = subprocess.run(["dpkg-query", *form, *words], check=True, capture_output=True, text=True)
    return done.stdout


def _with_dependencies(packages):
    """These packages and those that they depend on: the first of alternatives that is installed."""
    known = {}
    for line in _query(["-W"], "-f", "${db:Status-Abbrev}\t${Package}\t${Provides}\t${Pre-Depends}, ${Depends}\n").splitlines():
        status, name, provides, needs = line.split("\t")
        if status.startswith("ii"):
            for alias in [name, *(word.split()[0] for word in provides.split(",") if word.strip())]:
                known.setdefault(re.sub(":.*", "", alias), (name, needs))
    found, open_names = set(), list(packages)
    while open_names:
        name = open_names.pop()
        name, needs = known[name]
        if name not in found:
            found.add(name)
            for choice in filter(str.strip, needs.split(",")):
                names = [re.split(r"[\s:(]", word.strip())[0] for word in choice.split("|")]
                open_names.append(next(name for name in names if name in known))
    return sorted(found)


def make(root, packages=NEEDED):
    """Copies the packages into the folder `root`, and lists them as installed there."""
    root = Path(root)
    for folder in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / folder).mkdir(parents=True)
        (root / folder).symlink_to(f"usr/{folder}")
    for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "tmp", "dev", "proc", "mnt"):
        (root / folder).mkdir(parents=True)
    packages = _with_dependencies(packages)
    files = set()
    for package in packages:
        listed = _query(["--listfiles"], package).splitlines()
        files |= {name for name in listed if name.startswith("/") and not Path(name).is_dir() and Path(name).exists()}
        (root / f"var/lib/dpkg/info/{package}.list").write_text("/.\n")
    names = "\0".join(sorted(name for name in files if not name.startswith(("/usr/share/doc/", "/usr/share/locale/", "/usr/share/man/"))))
    words = f"tar -C / -c --null -T - | tar -C '{root}' -x --keep-directory-symlink"
    subprocess.run(["sh", "-c", words], input=names.encode(), check=True, stderr=subprocess.DEVNULL)
    (root / "var/lib/dpkg/status").write_text(_query(["--status"], *packages))
    (root / "var/lib/dpkg/available").write_text("")


def dpkg(root, *words):
    """Runs dpkg on the packages of the root."""
    return subprocess.run(["dpkg", f"--root={root}", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def shell(root, command, **options):
    """Starts a shell in the root, with /proc, /dev and mounts that end with it."""
    start = 'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$0" /bin/sh -c "$1"'
    words = ["unshare", "--mount", "sh", "-c", start, root, f"cd /tmp && {command}"]
    return subprocess.Popen(
        words, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, **options,
    )
