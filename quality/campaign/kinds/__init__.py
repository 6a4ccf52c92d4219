"""The kinds of faults, one file each. A kind is a module with

    WEIGHT        how often its cases come, compared with the other kinds
    SMOKE         how many of its cases the short campaign tries
    NEEDS_ROOT    whether it mounts file systems or acts as other users
    cases(setup, seed)   an endless generator of cases, the same for the same seed
    run(case, trial)     tries one and gives `survived` or `refused`; raises Lost or Wrong
"""

from . import calls, damage, failures, full, kills, odd, pairs, planted, power, strangers, volumes

KINDS = {
    "kill": kills,
    "call": calls,
    "power": power,
    "full": full,
    "fail": failures,
    "damage": damage,
    "pair": pairs,
    "planted": planted,
    "odd": odd,
    "array": volumes,
    "stranger": strangers,
}
