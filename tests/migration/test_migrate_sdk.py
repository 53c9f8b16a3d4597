"""Checks of names and keywords of the SDK."""

from __future__ import annotations

from pathlib import Path

from migration_support import notebook, script, summary


def test_supported_names_are_counted(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        from azureml.core import Experiment, Workspace
        from azureml.core.compute import AmlCompute, ComputeTarget
        from azureml.train.dnn import PyTorch

        ws = Workspace.from_config()
        cluster = ComputeTarget.create(ws, "cluster", AmlCompute.provisioning_configuration(max_nodes=4))
        cluster.wait_for_completion(show_output=True, min_node_count=None, timeout_in_minutes=20)
        est = PyTorch(source_directory=".", entry_script="train.py", compute_target=cluster, use_gpu=True)
        run = Experiment(ws, name="digits").submit(est)
        run.wait_for_completion(show_output=True)
        print(run.get_metrics())
        """,
    )
    assert summary(report) == []
    assert report.verdict == "runs"
    assert {"azureml.train.dnn.PyTorch", "Workspace.from_config", "Run.get_metrics"} <= set(report.sdk_names)


def test_azure_services_are_reported(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        import azureml.train.automl
        from azureml.pipeline.core import Pipeline
        from azureml.core.compute import AksCompute
        from azure.storage.blob import BlockBlobService
        """,
    )
    assert summary(report) == [
        ("azure-only", "azureml.train.automl", 1),
        ("azure-only", "azureml.pipeline.core", 2),
        ("azure-only", "azureml.core.compute.AksCompute", 3),
        ("azure-only", "azure.storage.blob", 4),
    ]
    assert all(finding.remedy for finding in report.findings)
    assert report.verdict == "attention"


def test_an_unknown_member_is_found_across_cells(tmp_path: Path) -> None:
    report = notebook(
        tmp_path,
        "# A notebook",
        "from azureml.core import Workspace as W, Experiment",
        """
        ws = W.from_config()
        run = Experiment(ws, 'digits').start_logging()
        """,
        "# A text for people",
        """
        run.log('loss', 1)
        run.log_everything(locals())
        """,
    )
    (finding,) = report.findings
    assert (finding.rule, finding.name, finding.cell, finding.line) == ("unknown-name", "Run.log_everything", 5, 2)


def test_an_unknown_keyword_is_reported_with_a_suggestion(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        from azureml.train.dnn import TensorFlow
        TensorFlow(source_directory=".",
                   entry_scrpt="train.py",
                   compute_target="local")
        """,
    )
    finding = report.findings[0]
    assert (finding.rule, finding.line) == ("unknown-keyword", 3)
    assert "'entry_script'" in finding.remedy


def test_removed_keywords_are_reported_and_attach_config_is_accepted(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        from azureml.core import Workspace
        from azureml.core.compute import ComputeTarget, RemoteCompute
        from azureml.core.model import Model
        from azureml.core.webservice import AciWebservice
        ws = Workspace.from_config()
        Model.register(workspace=ws, model_path="m.pkl", model_name="m", root_dir=".")
        AciWebservice.deploy_configuration(cpu_cores=1, app_insights_enabled=True)
        machine = RemoteCompute.attach_configuration(address="host", ssh_port=22, username="me", private_key_file="key")
        ComputeTarget.attach(ws, name="machine", attach_config=machine)
        """,
    )
    assert [(f.rule, f.line) for f in report.findings] == [("unknown-keyword", 6), ("unknown-keyword", 7)]
    assert "enable_app_insights" in report.findings[1].remedy


def test_keywords_of_subclasses_are_accepted(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        from azureml.core import Experiment, Workspace
        from azureml.train.hyperdrive import HyperDriveConfig
        config = HyperDriveConfig(estimator=None)
        run = Experiment(Workspace.from_config(), "sweep").submit(config)
        print(run.get_best_run_by_primary_metric().get_details())
        """,
    )
    assert summary(report) == []


def test_unknown_values_are_not_reported(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        from azureml.core import Run
        def go(run):
            run.anything(at=all)
        run = Run.get_context()
        run = other(run)
        run.something_else()
        """,
    )
    assert summary(report) == []


def test_star_imports_and_module_attributes_are_resolved(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        import azureml.core
        from azureml.train.hyperdrive import *
        print(azureml.core.VERSION, azureml.core.Universe)
        policy = BanditPolicy(evaluation_interval=2, slack=0.1)
        """,
    )
    assert summary(report) == [
        ("unknown-name", "azureml.core.Universe", 3),
        ("unknown-keyword", "BanditPolicy(slack=…)", 4),
    ]


def test_a_replaced_class_has_its_own_remedy(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        from azureml.core.model import ModelPackage
        from azureml.data import OutputFileDatasetConfig
        from azureml.exceptions import ProjectSystemException
        import azureml.data
        azureml.data.OutputFileDatasetConfig
        """,
    )
    assert summary(report) == [
        ("unknown-name", "azureml.core.model.ModelPackage", 1),
        ("unknown-name", "azureml.data.OutputFileDatasetConfig", 2),
        ("unknown-name", "azureml.data.OutputFileDatasetConfig", 5),
    ]
    served, sent, same = (finding.remedy for finding in report.findings)
    assert "Model.deploy(…) serves models" in served
    assert sent == same
    assert "datastore.path('results').as_upload()" in sent


def test_setting_an_unknown_attribute_of_a_configuration_is_reported(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        from azureml.core.runconfig import RunConfiguration
        config = RunConfiguration()
        config.target = "local"
        config.taget = "local"
        """,
    )
    assert summary(report) == [("unknown-name", "RunConfiguration.taget", 4)]


def test_an_uninstallable_framework_version_is_reported(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        from azureml.core.conda_dependencies import CondaDependencies
        from azureml.train.dnn import PyTorch
        from azureml.train.sklearn import SKLearn
        PyTorch(source_directory=".", compute_target="local",
                framework_version="1.4",
                pip_packages=["pandas", "numpy==1.16.2", "scikit-learn==1.5.0"])
        env = CondaDependencies.create(conda_packages=["tensorflow-gpu", "scikit-learn=0.20.3"])
        env.add_pip_package("sklearn")
        SKLearn(source_directory=".", compute_target="local", pip_packages=["joblib==0.13.2"])
        """,
    )
    assert summary(report) == [
        ("framework-version", "framework_version='1.4'", 5),
        ("framework-version", "numpy==1.16.2", 6),
        ("framework-version", "scikit-learn=0.20.3", 7),
        ("package-removed", "tensorflow-gpu", 7),
        ("package-removed", "sklearn", 8),
        ("framework-version", "joblib==0.13.2", 9),
    ]


def test_results_of_unknown_functions_are_not_reported(tmp_path: Path) -> None:
    report = script(
        tmp_path,
        """
        from azureml.core import Datastore, Experiment, Workspace
        ws = Workspace.from_config()
        Experiment(ws, "x").submit(something()).get_output()
        Datastore(ws, "images").upload_files(["a.png"])
        Datastore.get(ws, "images").fly()
        """,
    )
    assert [(f.rule, f.line) for f in report.findings] == [("unknown-name", 5)]
