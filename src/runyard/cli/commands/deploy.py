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
    name: Annotated[str, typer.Argument(metavar="NAME", help="The service's name.")],
    models: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="MODEL", help="digits, digits:3 or digits:champion.", autocompletion=complete_model),
    ] = None,
    script: Annotated[
        Optional[str],
        typer.Option(metavar="FILE", help="The scoring script, with init() and run(). None: one ONNX model."),
    ] = None,
    source: Annotated[
        Optional[str], typer.Option(metavar="FOLDER", help="What travels with the script (default: it alone).")
    ] = None,
    python: Annotated[
        Optional[str], typer.Option(metavar="PATH", help="Serve with this Python as it is; nothing is built.")
    ] = None,
    packages: Annotated[
        Optional[list[str]],
        typer.Option(
            "--pip", metavar="PACKAGE", help="In an environment with this. Repeatable. Default: the run's own."
        ),
    ] = None,
    conda: Annotated[Optional[str], typer.Option(metavar="FILE", help="In the environment of a conda file.")] = None,
    port: Annotated[Optional[int], typer.Option(metavar="PORT", help="Default: a free one.")] = None,
    host: Annotated[
        Optional[str], typer.Option(metavar="ADDRESS", help="Listen there (default: 127.0.0.1, this machine alone).")
    ] = None,
    workers: Annotated[Optional[int], typer.Option(metavar="N", help="Processes that answer (default: 1).")] = None,
    key: Annotated[bool, typer.Option("--key", help="Answer only those who send a key.")] = False,
    batch: Annotated[
        Optional[int], typer.Option(metavar="N", help="ONNX: score up to N rows of several requests together.")
    ] = None,
    timeout: Annotated[
        Optional[float], typer.Option(metavar="SECONDS", help="For one call of run() (default: 60).")
    ] = None,
    traffic: Annotated[
        Optional[int],
        typer.Option(metavar="PERCENT", help="As a further version of a service that is there, with this share."),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="As the next version of a service that is there; no request is lost.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Deploy models as a service, and wait until it answers."""
    from runyard import Webservice, Workspace
    from runyard.sdk.webservice import deploy

    workspace = Workspace()
    inference = _inference(script, source, python, packages, conda)
    settings: dict[str, Any] = {"workers": workers, "batching": {"largest": batch} if batch else None}
    settings["limits"] = {"timeout_s": timeout} if timeout is not None else None
    if update or traffic is not None:
        for option, value in (("--port", port), ("--host", host)):
            if value is not None:
                raise UserErrorException(f"{option} is for a new service", hint="a service stays where it is")
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
        print_status(f"\nstopped waiting; the deployment goes on:  runyard services show {service.name}")
        if is_new:
            print_status(f"runyard services delete {service.name} ends it, and frees the name")
        return INTERRUPTED
    except WebserviceException as error:
        raise _with_a_way_out(error, service.name, is_new) from None
    if as_json:
        print_json(service._view)
        return 0
    print_status(f"{service.name} answers at {service.scoring_uri}")
    print_status(f"next     runyard invoke {service.name} '{{…}}'   runyard services show {service.name}")
    return 0


def _inference(
    script: str | None, source: str | None, python: str | None, packages: list[str] | None, conda: str | None
) -> Any:
    from runyard import CondaDependencies, Environment, InferenceConfig

    if sum(bool(one) for one in (python, packages, conda)) > 1:
        raise UserErrorException("--python, --pip and --conda exclude each other", hint="give one of them")
    if script is None:
        for option, value in (("--source", source), ("--python", python), ("--pip", packages), ("--conda", conda)):
            if value:
                raise UserErrorException(f"{option} goes with a --script", hint="an ONNX model needs neither")
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
    """Each step, as it comes."""
    said = ""
    view = service._view
    while view["state"] == "Transitioning":
        view = service.workspace.connection.get(f"/api/services/{service.name}", after=view["change"])
        if view["doing"] and view["doing"] != said:
            said = view["doing"]
            print_status(said)
    service.wait_for_deployment()


def _with_a_way_out(error: WebserviceException, name: str, is_new: bool) -> WebserviceException:
    """The name is taken from now on: without a word the next attempt would end at that."""
    message, _, hint = error.message.partition("\n\nhint: ")  # the yard's own words have theirs inside
    way = f"mended, the same command with --update tries again; runyard services delete {name} frees the name"
    if not is_new:
        way = f"runyard services show {name} says what serves now"
    return WebserviceException(message, hint="\n".join(filter(None, (hint or error.hint, way))))
