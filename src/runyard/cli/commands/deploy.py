"""The `runyard deploy` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from runyard.cli.command import Command, new_app
from runyard.cli.commands.models import complete_model
from runyard.cli.follow import INTERRUPTED, print_status
from runyard.cli.run_lookup import Json, print_json
from runyard.errors import UserErrorException, WebserviceException

app = new_app()


@app.command(cls=Command)
def deploy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the service.")],
    models: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="MODEL", help="digits, digits:3 or digits:champion.", autocompletion=complete_model),
    ] = None,
    script: Annotated[
        Optional[str],
        typer.Option(metavar="FILE", help="Scoring script with init() and run(). Not needed for a single ONNX model."),
    ] = None,
    source: Annotated[
        Optional[str],
        typer.Option(metavar="FOLDER", help="Folder to deploy with the script (default: only the script)."),
    ] = None,
    python: Annotated[
        Optional[str], typer.Option(metavar="PATH", help="Use this existing Python; no environment is built.")
    ] = None,
    packages: Annotated[
        Optional[list[str]],
        typer.Option(
            "--pip",
            metavar="PACKAGE",
            help="Package of the environment. Repeatable. Default: the training run's environment.",
        ),
    ] = None,
    conda: Annotated[Optional[str], typer.Option(metavar="FILE", help="Conda file of the environment.")] = None,
    port: Annotated[Optional[int], typer.Option(metavar="PORT", help="Port (default: a free one).")] = None,
    host: Annotated[
        Optional[str], typer.Option(metavar="ADDRESS", help="Address to listen on (default: 127.0.0.1).")
    ] = None,
    workers: Annotated[
        Optional[int], typer.Option(metavar="N", help="Number of worker processes (default: 1).")
    ] = None,
    key: Annotated[bool, typer.Option("--key", help="Require a key.")] = False,
    batch: Annotated[
        Optional[int], typer.Option(metavar="N", help="ONNX: score up to N rows of concurrent requests in one call.")
    ] = None,
    timeout: Annotated[
        Optional[float], typer.Option(metavar="SECONDS", help="Time limit of one call of run() (default: 60).")
    ] = None,
    traffic: Annotated[
        Optional[int],
        typer.Option(metavar="PERCENT", help="Add a version to an existing service with this share of the traffic."),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Update an existing service without losing requests.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Deploy models as a service and wait until it is ready."""
    from runyard import Webservice, Workspace
    from runyard.sdk.webservice import deploy

    workspace = Workspace()
    inference = _inference(script, source, python, packages, conda)
    settings: dict[str, Any] = {"workers": workers, "batching": {"largest": batch} if batch else None}
    settings["limits"] = {"timeout_s": timeout} if timeout is not None else None
    if update or traffic is not None:
        for option, value in (("--port", port), ("--host", host)):
            if value is not None:
                raise UserErrorException(
                    f"{option} can only be set for a new service", hint="the address of a service does not change"
                )
        service = Webservice(workspace, name)
        if traffic is not None:
            service.create_version(traffic, models or None, inference)
        else:
            changes = {option: value for option, value in settings.items() if value is not None}
            service._update(models=models or None, inference_config=inference, auth_enabled=key or None, **changes)
    else:
        from runyard import LocalWebservice

        config = LocalWebservice.deploy_configuration(port, auth_enabled=key, host=host, **settings)
        service = deploy.deploy(workspace, name, models or [], inference, config)
    is_new = not update and traffic is None
    try:
        _follow(service)
    except KeyboardInterrupt:
        print_status(f"\nstopped waiting; the deployment continues:  runyard services show {service.name}")
        if is_new:
            print_status(f"to stop it and free the name:  runyard services delete {service.name}")
        return INTERRUPTED
    except WebserviceException as error:
        raise _with_next_step(error, service.name, is_new) from None
    if as_json:
        print_json(service._view)
        return 0
    print_status(f"{service.name} is ready at {service.scoring_uri}")
    print_status(f"next     runyard invoke {service.name} '{{…}}'   runyard services show {service.name}")
    return 0


def _inference(
    script: str | None, source: str | None, python: str | None, packages: list[str] | None, conda: str | None
) -> Any:
    from runyard import CondaDependencies, Environment, InferenceConfig

    if sum(map(bool, (python, packages, conda))) > 1:
        raise UserErrorException("--python, --pip and --conda are mutually exclusive", hint="use one of them")
    if script is None:
        for option, value in (("--source", source), ("--python", python), ("--pip", packages), ("--conda", conda)):
            if value:
                raise UserErrorException(f"{option} requires --script", hint="an ONNX model needs no environment")
        return None
    environment = None
    if python:
        environment = Environment("service")
        environment.python.user_managed_dependencies = True
        environment.python.interpreter_path = python
    elif packages:
        environment = Environment("service")
        environment.python.conda_dependencies = CondaDependencies.create(pip_packages=packages)
    elif conda:
        environment = Environment.from_conda_specification("service", conda)
    if source is not None and Path(script).is_file() and not (Path(source) / script).is_file():
        script = Path(script).resolve().relative_to(Path(source).resolve()).as_posix()
    return InferenceConfig(script, source_directory=source, environment=environment)


def _follow(service: Any) -> None:
    """Print each step of the deployment."""
    activity = ""
    view = service._view
    while view["state"] == "Transitioning":
        view = service.workspace.connection.get(f"/api/services/{service.name}", after=view["change"])
        if view["doing"] and view["doing"] != activity:
            activity = view["doing"]
            print_status(activity)
    service.wait_for_deployment()


def _with_next_step(error: WebserviceException, name: str, is_new: bool) -> WebserviceException:
    """Add the next step: the name is in use now, and repeating the command would fail because of that."""
    message, _, hint = error.message.partition("\n\nhint: ")  # the stored message may contain a hint
    next_step = f"after fixing it, repeat the command with --update, or free the name: runyard services delete {name}"
    if not is_new:
        next_step = f"the serving version is shown by runyard services show {name}"
    return WebserviceException(message, hint="\n".join(filter(None, (hint or error.hint, next_step))))
