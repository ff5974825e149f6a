"""Learning from what is said: turns become memories, or wait in the inbox.

``learning`` reads one turn, ``turns`` does so in a job after a chat, ``inbox`` holds what somebody
has to decide, ``asking`` is the optional model, ``settings`` what is switched on.
"""
