"""lmms-eval with the stand-ins of stock data sets, as a program that torchrun starts."""

from __future__ import annotations

from contextlib import contextmanager

import test_stock_tasks

if __name__ == "__main__":
    from lmms_eval.__main__ import cli_evaluate

    with contextmanager(test_stock_tasks.stand_ins.__wrapped__)():
        cli_evaluate()
