"""Encrypted wallet files of the public SDK and of `ombra keys`, each opened by the other.

usage: storage.py OMBRA FOLDER

OMBRA is the node's program, FOLDER an empty folder. Prints one line of JSON.
"""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

from chain import DEVELOPMENT, same
from ombrachain import EncryptedStorage, Wallet

PASSWORD = "parolă 😀 with spaces"


class Keys:
    """`ombra keys` with a key store in a folder of its own."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, *arguments, password=PASSWORD):
        secret = self.folder / "password"
        secret.write_text(password + "\n", "utf-8")
        secret.chmod(0o600)
        environment = {
            **os.environ,
            "OMBRA_KEYS_DIR": str(self.folder / "keys"),
            "OMBRA_PASSWORD_FILE": str(secret),
        }
        command = [self.program, "keys", *map(str, arguments)]
        return subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )

    def __call__(self, *arguments):
        ended = self.run(*arguments)
        assert ended.returncode == 0, f"{arguments}: {ended.stderr}"
        return ended.stdout.strip()


def the_node_opens_what_the_sdk_wrote(keys, folder):
    wallets = {
        "words": Wallet.from_mnemonic(DEVELOPMENT, 3),
        "long": Wallet.generate(words=24),
        "key": Wallet.from_private_key("07" * 32),
    }
    for name, wallet in wallets.items():
        file = folder / f"{name}.enc"
        EncryptedStorage(file).save(wallet, PASSWORD)
        same(wallet.address, json.loads(keys("show", file, "--json"))["address"])
        same(wallet.private_key, keys("export", file, "--secret", "private-key"))
        keys("import", name, "--file", file)
        same(wallet.address, json.loads(keys("show", name, "--json"))["address"])
        if wallet.mnemonic:
            same(wallet.mnemonic, keys("export", name, "--secret", "mnemonic"))
    return wallets


def the_sdk_opens_what_the_node_wrote(keys, folder, wallets):
    made = keys("new", "made", "--json")
    for name in [*wallets, "made"]:
        file = folder / f"{name}.out"
        keys("export", name, "--out", file)
        same(0o600, stat.S_IMODE(file.stat().st_mode))
        opened = EncryptedStorage(file).load(PASSWORD)
        same(json.loads(keys("show", name, "--json"))["address"], opened.address)
        if name in wallets:
            same(wallets[name], opened)
        else:
            same(opened, Wallet.from_mnemonic(opened.mnemonic, opened.hd_index))
            assert opened.mnemonic in made, "the words that were printed are others"
        # And back again: what the SDK writes over it is as good.
        EncryptedStorage(file).save(opened, PASSWORD)
        same(opened.private_key, keys("export", file, "--secret", "private-key"))
        try:
            EncryptedStorage(file).load("wrong")
        except ValueError:
            continue
        raise AssertionError("the SDK opened a file with a wrong password")


def a_wrong_password_is_told(keys, folder):
    file = folder / "words.enc"
    for arguments in (["show", file], ["export", file, "--secret", "private-key"]):
        ended = keys.run(*arguments, password="wrong")
        # A file shows its address only to who can open it.
        assert ended.returncode != 0 and not ended.stdout, (arguments, ended)
        assert "password" in ended.stderr, ended.stderr
    ended = keys.run("import", "other", "--file", file, password="wrong")
    assert ended.returncode != 0 and "password" in ended.stderr, ended


def main(program, folder):
    folder = Path(folder)
    keys = Keys(program, folder)
    wallets = the_node_opens_what_the_sdk_wrote(keys, folder)
    the_sdk_opens_what_the_node_wrote(keys, folder, wallets)
    a_wrong_password_is_told(keys, folder)
    print(
        json.dumps(
            {"listed": sorted(entry["name"] for entry in json.loads(keys("list", "--json")))}
        )
    )


main(*sys.argv[1:])
