"""Files of HDFS by WebHDFS. A command of Hadoop would start a JVM for each."""

import json
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT_S = 120


def _url(cluster, path, op, **more):
    query = urllib.parse.urlencode({"op": op, "user.name": "root", **more})
    return f"http://127.0.0.1:{cluster.ports.namenode_http}/webhdfs/v1{urllib.parse.quote(path)}?{query}"


def _asked(cluster, path, op, method="GET", **more):
    request = urllib.request.Request(_url(cluster, path, op, **more), method=method)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        return answer.read()


def files(cluster, path):
    """Sizes of the files of a folder by path, folders within it included. Empty if it is not there."""
    try:
        listed = json.loads(_asked(cluster, path, "LISTSTATUS"))["FileStatuses"]["FileStatus"]
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return {}
        raise
    found = {}
    for one in listed:
        name = f"{path}/{one['pathSuffix']}"
        if one["type"] == "DIRECTORY":
            found |= files(cluster, name)
        else:
            found[name] = one["length"]
    return found


def read(cluster, path):
    """The bytes of a file."""
    return _asked(cluster, path, "OPEN")


def remove(cluster, path):
    """Removes a file or folder, if it is there."""
    _asked(cluster, path, "DELETE", method="DELETE", recursive="true")
