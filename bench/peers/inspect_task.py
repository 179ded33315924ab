from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.scorer import exact
from inspect_ai.solver import generate


@task
def single_call(questions: str) -> Task:
    return Task(dataset=json_dataset(questions), solver=generate(), scorer=exact())
