"""Is the baseline answer a hallucination? Imports nothing of lmms-eval; each judge is imported when it is built."""

from hedge_tasks.judging.base import NO_ANSWER as NO_ANSWER
from hedge_tasks.judging.base import Case as Case
from hedge_tasks.judging.base import Judge as Judge
from hedge_tasks.judging.base import Verdict as Verdict
from hedge_tasks.judging.base import build_judge as build_judge
from hedge_tasks.judging.base import judge_names as judge_names
from hedge_tasks.judging.config import check_judge as check_judge
from hedge_tasks.judging.config import configured_judge as configured_judge
from hedge_tasks.judging.config import judge_from as judge_from
from hedge_tasks.judging.config import keep_labels as keep_labels
from hedge_tasks.judging.config import parse_spec as parse_spec
from hedge_tasks.judging.config import required_judge as required_judge
from hedge_tasks.judging.config import verdict_record as verdict_record
from hedge_tasks.judging.reliability import reliability as reliability
