"""What runs on a lab's hosts before anything is installed there: the standard library alone.

The operator's side packs this folder into one file (`nodes/lab/agent_archive.py`), copies it to
each host, and runs it over ssh: `python3 agent.pyz COMMAND`, a JSON object on stdin, one on stdout.
A host's folder holds

    houses/KEY/     wheels        envs/KEY/  an environment made of them
    keys/NAME/      of its own peers, of nobody else
    peers/NAME.json how to start a peer      kept/NAME.json  what became of it
    logs/ state/ traces/

so that whatever is asked twice is done once, and an interruption leaves nothing half believed.
"""
