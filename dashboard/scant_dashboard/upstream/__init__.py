"""Patches of Panel, Bokeh, Tornado and Param, one a module.

Each names its reason, or the upstream issue, and the version whose private API it leans on, and
has a test in `tests/dashboard/upstream` that fails once upstream needs it no more. `install_all`
applies those that concern the whole process; the others are called where they are needed.
"""
