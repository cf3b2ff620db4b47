"""Waiting for the screens without a clock: until no message and no work is left."""


async def settle(app, pilot):
    """Returns when every worker that was begun, and every one that its end began, has come to its end."""
    await pilot.pause()
    while app.is_running and len(app.workers):
        await app.workers.wait_for_complete()
        await pilot.pause()
    await pilot.pause()
