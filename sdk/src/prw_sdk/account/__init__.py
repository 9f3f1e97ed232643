"""Accounting for what a source states: of one capture, of a whole run, and against the last good run. Pure."""

from prw_sdk.account.bounds import Breach, breaches, found_nothing
from prw_sdk.account.capture import Account, account
from prw_sdk.account.changes import Change, ChangeKind, changes
from prw_sdk.account.profile import FieldProfile, How, Profile, Tally

__all__ = [
    "Account",
    "Breach",
    "Change",
    "ChangeKind",
    "FieldProfile",
    "How",
    "Profile",
    "Tally",
    "account",
    "breaches",
    "changes",
    "found_nothing",
]
