from pathlib import Path
from typing import Any


def colours(*, out: Path) -> dict[str, Any]:
    """Write the questions about colours.

    Args:
        out: Folder that HEDGE_DATA_DIR will name.
    """
    from datasets import Dataset

    things = {"grass": "green", "blood": "red", "the sky": "blue"}
    rows = [
        {"id": f"{'q' * (i + 1)}-{thing}", "question": f"What colour has {thing} ({i})?", "answer": colour}
        for thing, colour in things.items()
        for i in range(8)
    ]
    folder = out / "colours__colours"
    folder.mkdir(parents=True, exist_ok=True)
    Dataset.from_list(rows).to_parquet(folder / "test.parquet")
    return {"rows": len(rows), "notes": [f"Now set HEDGE_DATA_DIR={out}"]}
