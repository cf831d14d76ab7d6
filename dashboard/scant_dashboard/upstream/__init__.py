"""Patches of Panel, Bokeh, Tornado and Param, one per module.

Each states its reason or the upstream issue, and the version whose private API it uses, and has a
test in `tests/dashboard/upstream` that fails once the patch is no longer needed. `install_all`
applies those that concern the whole process; the others are applied where they are needed.
"""
