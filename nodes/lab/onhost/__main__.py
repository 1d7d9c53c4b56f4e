"""`python3 agent.pyz COMMAND`: any Python 3 reads this, so that an old one is told to people."""

import json
import sys

OLDEST = (3, 11)

if sys.version_info < OLDEST:
    print(
        json.dumps(
            {
                "error": "Python is %d.%d, at least 3.11 is needed" % sys.version_info[:2],  # noqa: UP031
                "fix": "install python3.11 or newer there, and set python = in its [[host]]",
            }
        )
    )
    sys.exit(0)

from nodes.lab.onhost.commands import main  # noqa: E402 - an old Python could not read it

main(sys.argv[1:])
