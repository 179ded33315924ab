"""Starts MiniStack (MIT, from PyPI) as a child of the tests, after repairing where it departs from AWS in a
way that these tests would notice. Every repair stands in docs/emulator.md; what cannot be repaired in a few
lines is refused with an error instead of being ignored. Nothing of MiniStack is copied here."""

import contextvars
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import ministack.app
from ministack.core import iam_actions, iam_evaluator, lambda_runtime
from ministack.services import eventbridge, lambda_svc, s3
from ministack.services import stepfunctions as sfn
from ministack.services.cloudformation import provisioners

Failure = sfn._ExecutionError


# --- Definitions: what the engine would ignore is refused when a machine is created -------------------------

COMMON = {"Type", "Comment", "Next", "End", "InputPath", "OutputPath"}
TRIES = {"ResultSelector", "ResultPath", "Retry", "Catch"}
FIELDS = {
    "Pass": {"Result", "Parameters", "ResultPath"},
    "Succeed": set(),
    "Fail": {"Error", "Cause", "ErrorPath", "CausePath"},
    "Wait": {"Seconds", "SecondsPath", "Timestamp", "TimestampPath"},
    "Choice": {"Choices", "Default"},
    "Task": TRIES | {"Resource", "Parameters", "TimeoutSeconds", "HeartbeatSeconds"},
    "Parallel": TRIES | {"Branches"},
    "Map": TRIES | {
        "Label", "ItemsPath", "ItemSelector", "ItemReader", "ItemProcessor", "ResultWriter", "MaxConcurrency",
        "MaxConcurrencyPath", "ToleratedFailureCount", "ToleratedFailureCountPath", "ToleratedFailurePercentage",
        "ToleratedFailurePercentagePath",
    },
}
RESOURCES = re.compile(
    r"arn:aws:states:::(lambda:invoke|sqs:sendMessage(\.waitForTaskToken)?|batch:submitJob\.sync|states:startExecution(\.sync:2)?)$"
)
REFERENCE = re.compile(r"\$(\.[A-Za-z_]\w*|\[\d+\])*$")


def problems(states, where):
    for name, state in states.items():
        here = f"{where}/{name}"
        kind = state.get("Type")
        for field in sorted(state.keys() - COMMON - FIELDS.get(kind, set())):
            yield f"{here}: {kind} with {field}"
        if kind == "Task" and not RESOURCES.match(state.get("Resource", "")):
            yield f"{here}: resource {state.get('Resource')}"
        if kind == "Map":
            reader = state.get("ItemReader", {})
            if reader and (reader.get("ReaderConfig") or {}).keys() - {"InputType"}:
                yield f"{here}: this ReaderConfig"
            distributed = state.get("ItemProcessor", {}).get("ProcessorConfig", {}).get("Mode") == "DISTRIBUTED"
            if not distributed and ("ItemReader" in state or "ResultWriter" in state):
                yield f"{here}: ItemReader or ResultWriter on an inline Map"
            yield from problems(state.get("ItemProcessor", {}).get("States", {}), here)
        for branch in state.get("Branches", []):
            yield from problems(branch.get("States", {}), here)


def checked(create):
    def create_checked(data):
        definition = data.get("definition")
        if definition is not None:
            parsed = json.loads(definition)
            found = [f"the field {key}" for key in parsed.keys() - {"Comment", "StartAt", "States", "TimeoutSeconds"}]
            found += problems(parsed.get("States", {}), "")
            left = re.findall(r"\$\{\w+\}", definition)
            found += [f"the substitution {name}, which was not supplied" for name in left]
            if found:
                return sfn.error_response_json(
                    "InvalidDefinition", "the emulator does not run: " + "; ".join(found), 400)
        return create(data)

    return create_checked


sfn._create_state_machine = checked(sfn._create_state_machine)
sfn._update_state_machine = checked(sfn._update_state_machine)


# --- Paths: a path that leads nowhere fails, instead of giving null -------------------------------------------

def resolve_path(path, data):
    if not isinstance(path, str) or not REFERENCE.match(path):
        raise Failure("States.Runtime", f"the emulator reads reference paths only, not {path}")
    for field, index in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        try:
            data = data[field] if field else data[int(index)]
        except (KeyError, IndexError, TypeError):
            raise Failure("States.Runtime", f"the path {path} leads nowhere in the state's data") from None
    return data


def evaluate_rule(rule, data, ctx=None):
    if "IsPresent" in rule:
        try:
            sfn._resolve_path_or_ctx(rule["Variable"], data, ctx)
            return rule["IsPresent"]
        except Failure:
            return not rule["IsPresent"]
    return original_evaluate_rule(rule, data, ctx)


original_evaluate_rule = sfn._evaluate_rule
sfn._evaluate_rule = evaluate_rule
sfn._resolve_path = resolve_path


# --- Retry: full jitter and the longest delay ------------------------------------------------------------------

def find_matching_retrier(retriers, error, retry_counts):
    retrier, at = original_find_matching_retrier(retriers, error, retry_counts)
    if retrier is None:
        return retrier, at
    seconds = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2.0) ** retry_counts.get(at, 0)
    seconds = min(seconds, retrier.get("MaxDelaySeconds", seconds))
    if retrier.get("JitterStrategy") == "FULL":
        seconds = random.uniform(0, seconds)
    return {**retrier, "IntervalSeconds": seconds, "BackoffRate": 1}, at


original_find_matching_retrier = sfn._find_matching_retrier
sfn._find_matching_retrier = find_matching_retrier


# --- Map: limits by path, JSON Lines, ResultWriter -------------------------------------------------------------

def run_distributed_map(state, raw_input, effective, iterator, execution, ctx):
    state = {**state, "Label": sfn.new_uuid()}
    for field in ("MaxConcurrency", "ToleratedFailureCount", "ToleratedFailurePercentage"):
        path = state.pop(f"{field}Path", None)
        if path is not None:
            state[field] = sfn._resolve_path_or_ctx(path, effective, ctx)
    writer = state.pop("ResultWriter", None)
    if writer is None:
        return original_run_distributed_map(state, raw_input, effective, iterator, execution, ctx)
    # The results do not become the state's output: where they were written does.
    own = {key: state.pop(key) for key in ("ResultSelector", "ResultPath", "OutputPath") if key in state}
    _, following = original_run_distributed_map(state, raw_input, effective, iterator, execution, ctx)
    arn = next(arn for arn in list(sfn._map_runs) if f"/{state['Label']}:" in arn)
    result = {"MapRunArn": arn, "ResultWriterDetails": write_results(writer, effective, ctx, arn)}
    result = sfn._apply_result_selector(own, result)
    return sfn._apply_output_path(own, sfn._apply_result_path(own, raw_input, result), ctx), following


def write_results(writer, effective, ctx, arn):
    place = sfn._resolve_params_obj(writer["Parameters"], effective, ctx)
    bucket, prefix = place["Bucket"], f"{place.get('Prefix', '').rstrip('/')}/{arn.rsplit(':', 1)[1]}"

    def put(name, value):
        body = json.dumps(value).encode()
        status, _, answer = s3._put_object(bucket, f"{prefix}/{name}", body, {})
        if status != 200:
            raise Failure("States.ResultWriterFailed", f"{bucket}/{prefix}/{name}: {answer!r}")
        return {"Key": f"{prefix}/{name}", "Size": len(body)}

    files = {"FAILED": [], "PENDING": [], "SUCCEEDED": []}
    for status in ("FAILED", "SUCCEEDED"):
        rows = [
            {
                "ExecutionArn": child["executionArn"], "Name": child["name"], "Input": child["input"],
                "Status": status, "StartDate": child["startDate"], "StopDate": child["stopDate"],
                "StateMachineArn": child["stateMachineArn"],
                **({"Output": child["output"]} if status == "SUCCEEDED"
                   else {"Error": child["error"], "Cause": child["cause"]}),
            }
            for child in list(sfn._executions.values())
            if child.get("mapRunArn") == arn and child["status"] == status
        ]
        if rows:
            files[status].append(put(f"{status}_0.json", rows))
    manifest = put("manifest.json", {"DestinationBucket": bucket, "MapRunArn": arn, "ResultFiles": files})
    return {"Bucket": bucket, "Key": manifest["Key"]}


def parse_reader_items(text, config):
    if config.get("InputType") == "JSONL":
        # A line ends at a line feed and nowhere else: U+2028 may stand inside a JSON string.
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    return original_parse_reader_items(text, config)


original_run_distributed_map = sfn._run_distributed_map
original_parse_reader_items = sfn._parse_reader_items
sfn._run_distributed_map = run_distributed_map
sfn._parse_reader_items = parse_reader_items


# --- Task tokens: answered once, heartbeats, and stopping what a stopped execution has started ---------------

lineage = contextvars.ContextVar("lineage", default=())
# One event for each Parallel around what runs: set when one of its branches has failed.
left_behind = contextvars.ContextVar("left_behind", default=())
branches_of = {}
token_branches = {}
lineage_of = {}
token_owners = {}


def run_execution(arn):
    lineage_of[arn] = (*lineage.get(), arn)
    branches_of[arn] = left_behind.get()
    before = lineage.set(lineage_of[arn])
    try:
        original_run_execution(arn)
    finally:
        lineage.reset(before)


def is_stopped(arns):
    return any(sfn._executions[arn]["status"] == "ABORTED" for arn in arns)


def check_wanted():
    if is_stopped(lineage.get()):
        raise Failure("States.Aborted", "the execution was stopped")
    if is_left_behind(lineage.get()):
        raise Failure("States.Aborted", "another branch has failed")


def execute_task(state, raw_input, execution, ctx):
    check_wanted()
    return original_execute_task(state, raw_input, execution, ctx)


def fail_execution(execution, error, cause):
    if execution["status"] == "RUNNING":
        original_fail_execution(execution, error, cause)
        # A failed execution has no output; a task that waited for it fails as States.TaskFailed, whatever the error.
        execution["output"] = None


def stop_execution(data):
    answer = original_stop_execution(data)
    stopped = data.get("executionArn")
    for arn, arns in list(lineage_of.items()):
        child = sfn._executions.get(arn)
        if stopped in arns and child is not None and child["status"] == "RUNNING":
            child.update(status="ABORTED", stopDate=sfn.now_iso())
    for token, arns in list(token_owners.items()):
        info = sfn._task_tokens.get(token)
        if stopped in arns and info is not None:
            info["error"] = {"Error": "States.Aborted", "Cause": "the execution was stopped"}
            info["event"].set()
    return answer


def invoke_with_callback(resource, input_data, token, state):
    token_owners[token] = lineage.get()
    token_branches[token] = left_behind.get()
    if "HeartbeatSeconds" in state:
        threading.Thread(target=watch_heartbeat, args=(token, state["HeartbeatSeconds"]), daemon=True).start()
    return original_invoke_with_callback(resource, input_data, token, state)


beats = {}


def watch_heartbeat(token, seconds):
    beats[token] = time.monotonic()
    while True:
        time.sleep(0.1)
        info = sfn._task_tokens.get(token)
        if info is None and time.monotonic() - beats[token] > 1:
            return
        if info is not None and time.monotonic() - beats[token] > seconds:
            info["error"] = {"Error": "States.HeartbeatTimeout", "Cause": f"no heartbeat for {seconds} seconds"}
            info["event"].set()
            return


# --- Parallel: a branch that fails ends the others, and what they have started ---------------------------------

def is_left_behind(arns):
    return any(event.is_set() for event in left_behind.get()) or any(
        event.is_set() for arn in arns for event in branches_of.get(arn, ()))


def run_parallel_branches(state, raw_input, execution, ctx):
    effective = sfn._apply_parameters(state, sfn._apply_input_path(state, raw_input, ctx), ctx)
    failed, errors, results = threading.Event(), [], [None] * len(state["Branches"])

    def run_branch(at, branch):
        try:
            results[at] = sfn._run_sub_machine(branch["States"], branch["StartAt"], effective, execution, ctx)
        except Exception as error:
            errors.append(error if isinstance(error, Failure) else Failure("States.BranchFailed", str(error)))
            failed.set()

    before = left_behind.set((*left_behind.get(), failed))
    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(run_branch, at, branch), daemon=True)
        for at, branch in enumerate(state["Branches"])
    ]
    left_behind.reset(before)
    for thread in threads:
        thread.start()
    while not failed.is_set() and any(thread.is_alive() for thread in threads):
        failed.wait(0.05)
    if errors:
        end_branches(failed)
        raise errors[0]
    output = sfn._apply_result_path(state, raw_input, sfn._apply_result_selector(state, results))
    return sfn._apply_output_path(state, output, ctx), sfn._next_or_end(state)


def end_branches(failed):
    for arn, events in list(branches_of.items()):
        child = sfn._executions.get(arn)
        if failed in events and child is not None and child["status"] == "RUNNING":
            child.update(status="ABORTED", stopDate=sfn.now_iso())
    for token, events in list(token_branches.items()):
        info = sfn._task_tokens.get(token)
        if failed in events and info is not None:
            info["error"] = {"Error": "States.Aborted", "Cause": "another branch has failed"}
            info["event"].set()


sfn._run_parallel_branches = run_parallel_branches


# --- Batch: a job is a process of this machine, with the role and the environment of its definition ---------------

job_definitions = {}
definition_attempts = 5


def create_job_definition(logical_id, props, stack_name):
    name = props["JobDefinitionName"]
    job_definitions[name] = props["ContainerProperties"]
    arn = f"arn:aws:batch:{provisioners.get_region()}:{provisioners.get_account_id()}:job-definition/{name}:1"
    return arn, {"Arn": arn, "JobDefinitionArn": arn}


def run_job(parameters):
    definition = job_definitions.get(parameters["JobDefinition"])
    command = json.loads(os.environ.get("EMULATOR_JOB_COMMAND", "[]"))
    if definition is None or not command:
        raise Failure("Batch.ClientException", f"there is no job definition {parameters['JobDefinition']}")
    region, account, job = provisioners.get_region(), provisioners.get_account_id(), sfn.new_uuid()
    own = {entry["Name"]: str(entry["Value"]) for entry in definition.get("Environment", [])}
    credentials = lambda_runtime.execution_credentials({
        "FunctionArn": f"arn:aws:lambda:{region}:{account}:function:{job}", "FunctionName": job,
        "Role": definition["JobRoleArn"],
    })
    endpoint = f"http://{os.environ['BIND_HOST']}:{os.environ['GATEWAY_PORT']}"
    environment = {**os.environ, **own, **credentials, "AWS_REGION": region, "AWS_ENDPOINT_URL": endpoint}
    arns = lineage.get()
    for _ in range(definition_attempts):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)
        while process.poll() is None:
            time.sleep(0.1)
            if is_stopped(arns) or is_left_behind(arns):
                process.terminate()
                process.wait()
                raise Failure("States.Aborted", "the job was stopped")
        # SIGKILL stands for a host that was taken away, which the retry strategy tries again.
        if process.returncode != -signal.SIGKILL:
            break
    job_facts = {"JobName": parameters["JobName"], "JobId": job, "Container": {"ExitCode": process.returncode}}
    if process.returncode == 0:
        return {**job_facts, "Status": "SUCCEEDED"}
    job_facts |= {"Status": "FAILED", "StatusReason": "Essential container in task exited"}
    raise Failure("States.TaskFailed", json.dumps(job_facts))


def invoke_resource(resource, parameters):
    if resource.startswith("arn:aws:states:::batch:submitJob"):
        return run_job(parameters)
    return original_invoke_resource(resource, parameters)


original_invoke_resource = sfn._invoke_resource
sfn._invoke_resource = invoke_resource
provisioners._RESOURCE_HANDLERS["AWS::Batch::JobDefinition"] = {
    "create": create_job_definition, "delete": lambda physical_id, props: None}


def answering(answer):
    def answer_once(data):
        token = data.get("taskToken")
        info = sfn._task_tokens.get(token)
        if info is None or info["event"].is_set():
            if token in token_owners:
                return sfn.error_response_json("TaskTimedOut", "the task of this token is over", 400)
            return sfn.error_response_json("InvalidToken", "not a token of this account", 400)
        beats[token] = time.monotonic()
        return answer(data)

    return answer_once


def start_execution(data):
    arn = str(sfn._resolve_state_machine_arn(data.get("stateMachineArn", "")))
    arn = f"{arn.replace(':stateMachine:', ':execution:')}:{data.get('name')}"
    first = sfn._executions.get(arn)
    if first and first["status"] == "RUNNING" and json.loads(first["input"]) == json.loads(data.get("input", "{}")):
        return sfn.json_response({"executionArn": arn, "startDate": first["startDate"]})
    return original_start_execution(data)


original_run_execution = sfn._run_execution
original_execute_task = sfn._execute_task
original_fail_execution = sfn._fail_execution
original_stop_execution = sfn._stop_execution
original_start_execution = sfn._start_execution
original_invoke_with_callback = sfn._invoke_with_callback
sfn._run_execution = run_execution
sfn._execute_task = execute_task
sfn._fail_execution = fail_execution
sfn._stop_execution = stop_execution
sfn._start_execution = start_execution
sfn._invoke_with_callback = invoke_with_callback
for action in ("_send_task_success", "_send_task_failure", "_send_task_heartbeat"):
    setattr(sfn, action, answering(getattr(sfn, action)))


# --- Scheduler: a target's input may name the time that its tick was due -----------------------------------------

def invoke_target(target, event, rule, view=None):
    if event.get("Source") == "aws.scheduler" and target.get("Input"):
        # Cron schedules are due at full minutes, and the emulator looks every ten seconds.
        due = time.strftime("%Y-%m-%dT%H:%M:00Z", time.gmtime(event["Time"]))
        target = {**target, "Input": target["Input"].replace("<aws.scheduler.scheduled-time>", due)}
    original_invoke_target(target, event, rule, view)


original_invoke_target = eventbridge._invoke_target
eventbridge._invoke_target = invoke_target


# --- Lambda: what a handler throws keeps its name ---------------------------------------------------------------

BETWEEN = "\x1f"
THROWN = {
    'error: e.message, trace: e.stack': 'error: `${e.name}\\x1f${e.message}`, trace: e.stack',
    'error: String(err.message || err), trace': 'error: `${err.name}\\x1f${err.message || err}`, trace',
}


def execute_function_warm(func, event, request_id):
    result = original_execute_function_warm(func, event, request_id)
    body = result.get("body")
    if result.get("error") and BETWEEN in (body or {}).get("errorMessage", ""):
        body["errorType"], body["errorMessage"] = body["errorMessage"].split(BETWEEN, 1)
    return result


original_execute_function_warm = lambda_svc._execute_function_warm
lambda_svc._execute_function_warm = execute_function_warm
for theirs, ours in THROWN.items():
    assert theirs in lambda_runtime._NODEJS_WORKER_SCRIPT
    lambda_runtime._NODEJS_WORKER_SCRIPT = lambda_runtime._NODEJS_WORKER_SCRIPT.replace(theirs, ours)


# --- CloudFormation: an alarm on an expression is kept as a name, never evaluated --------------------------------

def metric_alarm_record(name, props):
    if not props.get("Metrics"):
        return original_metric_alarm_record(name, props)
    placeholder = {"MetricName": "expression", "Namespace": "expression"}
    return original_metric_alarm_record(name, {**props, **placeholder, "Metrics": None})


original_metric_alarm_record = provisioners._cw_metric_alarm_record
provisioners._cw_metric_alarm_record = metric_alarm_record


# --- CloudFormation: types that the emulator lacks are kept as names with nothing behind them -------------------

def placeholder(service, kind):
    def create(logical_id, props, stack_name):
        name = f"{stack_name}-{logical_id}"
        arn = f"arn:aws:{service}:{provisioners.get_region()}:{provisioners.get_account_id()}:{kind}/{name}"
        attributes = {"Arn": arn, "ComputeEnvironmentArn": arn, "JobQueueArn": arn, "Id": name}
        return (arn if service == "batch" else name), attributes

    return {"create": create, "delete": lambda physical_id, props: None}


for resource_type, service, kind in (
    ("AWS::Batch::ComputeEnvironment", "batch", "compute-environment"),
    ("AWS::Batch::JobQueue", "batch", "job-queue"),
    ("AWS::EC2::FlowLog", "ec2", "vpc-flow-log"),
):
    provisioners._RESOURCE_HANDLERS.setdefault(resource_type, placeholder(service, kind))


# --- IAM: what task tokens stand for, and two conditions that hold here without being said -------------------------------------------------------

def pin_request_origin(address, is_secure):
    # Policies that deny requests without TLS would deny everything that comes over the loopback interface.
    original_pin_request_origin(address, True)


def principal_keys(credential):
    account = credential.account_id
    return {**original_principal_keys(credential), "aws:resourceaccount": account, "s3:resourceaccount": account}


def extract_resource_arn(service, method, path, headers, body, query_params, region, account_id):
    arn = original_extract_resource_arn(service, method, path, headers, body, query_params, region, account_id)
    if service != "states" or arn != "*":
        return arn
    # A task token stands for the machine whose execution waits for it.
    owners = token_owners.get(iam_actions._safe_json_field(body, "taskToken"))
    return owners[-1].replace(":execution:", ":stateMachine:").rsplit(":", 1)[0] if owners else arn


original_extract_resource_arn = iam_actions.extract_resource_arn
iam_actions.extract_resource_arn = extract_resource_arn
original_pin_request_origin = ministack.app.pin_request_origin
original_principal_keys = iam_evaluator._principal_keys
ministack.app.pin_request_origin = pin_request_origin
iam_evaluator._principal_keys = principal_keys


# The tests hold our standard input open: when they are gone, however they ended, so are we and the handlers.
def end_with_parent():
    sys.stdin.buffer.read()
    shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
    os.killpg(os.getpgrp(), signal.SIGKILL)


threading.Thread(target=end_with_parent, daemon=True).start()
sys.argv = ["ministack"]
ministack.app.main()
