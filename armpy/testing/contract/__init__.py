"""Cases of the contract that do not belong to one operation."""

from armpy.testing.contract.case import ContractCase, judge_contract
from armpy.testing.contract.table import CONTRACT_CASES

__all__ = ["CONTRACT_CASES", "ContractCase", "judge_contract"]
