"""Table of the names in the `azureml` modules and their modules in Runyard.

It contains nothing else, because every training script with `from azureml.core import Run` imports it.
"""

from __future__ import annotations

# module of the SDK v1 -> its names
MODULES = {
    "azureml": "",
    "azureml.contrib": "",
    "azureml.contrib.services": "",
    "azureml.contrib.services.aml_request": "AMLRequest rawhttp",
    "azureml.contrib.services.aml_response": "AMLResponse",
    "azureml.contrib.tensorboard": "Tensorboard",
    "azureml.contrib.tensorboard.export": "export_to_tensorboard",
    "azureml.core": """
        ComputeTarget ContainerRegistry Dataset Datastore Environment Experiment Image Keyvault Model Run
        RunConfiguration ScriptRun ScriptRunConfig VERSION Webservice Workspace
    """,
    "azureml.core.authentication": """
        AzureCliAuthentication InteractiveLoginAuthentication MsiAuthentication ServicePrincipalAuthentication
        TokenAuthentication
    """,
    "azureml.core.compute": "AmlCompute BatchAiCompute ComputeTarget DsvmCompute HDInsightCompute RemoteCompute",
    "azureml.core.compute.amlcompute": "AmlCompute AmlComputeStatus ComputeTarget ComputeTargetException",
    "azureml.core.compute.compute": "ComputeTarget ComputeTargetException",
    "azureml.core.compute.dsvm": "ComputeTarget ComputeTargetException DsvmCompute",
    "azureml.core.compute.hdinsight": "ComputeTarget ComputeTargetException HDInsightCompute",
    "azureml.core.compute.remote": "ComputeTarget ComputeTargetException RemoteCompute",
    "azureml.core.compute_target": "AmlCompute ComputeTarget ComputeTargetException RemoteCompute",
    "azureml.core.conda_dependencies": "CondaDependencies",
    "azureml.core.container_registry": "ContainerRegistry",
    "azureml.core.dataset": "Dataset",
    "azureml.core.datastore": "Datastore",
    "azureml.core.environment": """
        CondaDependencies ContainerRegistry DEFAULT_CPU_IMAGE DEFAULT_GPU_IMAGE DockerSection Environment
        PythonSection SparkSection
    """,
    "azureml.core.experiment": "Experiment Run Workspace",
    "azureml.core.image": "ContainerImage Image",
    "azureml.core.image.container": "ContainerImage Image",
    "azureml.core.image.image": "Image Model",
    "azureml.core.keyvault": "Keyvault",
    "azureml.core.model": "Dataset Environment InferenceConfig Model",
    "azureml.core.resource_configuration": "ResourceConfiguration",
    "azureml.core.run": "ActivityFailedException Environment Run _OfflineRun",
    "azureml.core.runconfig": """
        AmlComputeConfiguration ComputeTarget CondaDependencies ContainerRegistry DEFAULT_CPU_IMAGE
        DEFAULT_GPU_IMAGE DataReferenceConfiguration DatasetConsumptionConfig DockerConfiguration DockerSection
        Environment HistoryConfiguration MpiConfiguration PyTorchConfiguration PythonSection Run
        RunConfiguration TensorflowConfiguration
    """,
    "azureml.core.script_run": "Run RunConfiguration ScriptRun",
    "azureml.core.script_run_config": "RunConfiguration ScriptRunConfig",
    "azureml.core.webservice": "AciWebservice AksWebservice LocalWebservice Webservice",
    "azureml.core.webservice.aci": "AciWebservice Environment Image Model Webservice",
    "azureml.core.webservice.aks": "AksWebservice Environment Image Model Webservice",
    "azureml.core.webservice.local": "InferenceConfig LocalWebservice Model Webservice",
    "azureml.core.webservice.webservice": "Image Model Webservice",
    "azureml.core.workspace": "AmlCompute ComputeTarget Dataset Datastore Experiment Image Model Webservice Workspace",
    "azureml.data": "FileDataset TabularDataset",
    "azureml.data.abstract_dataset": "AbstractDataset DatasetConsumptionConfig FileDatasetFactory",
    "azureml.data.azure_data_lake_datastore": "AzureDataLakeGen2Datastore",
    "azureml.data.azure_storage_datastore": "AzureBlobDatastore DataReference",
    "azureml.data.data_reference": "DataReference",
    "azureml.data.datapath": "DataPath DataPathComputeBinding DataReference",
    "azureml.data.dataset_consumption_config": "DatasetConsumptionConfig",
    "azureml.data.dataset_factory": "DataReference DataType FileDatasetFactory TabularDatasetFactory",
    "azureml.data.file_dataset": "FileDataset",
    "azureml.data.tabular_dataset": "FileDataset TabularDataset",
    "azureml.exceptions": """
        ActivityFailedException AuthenticationException AzureMLException ComputeTargetException
        ExperimentExecutionException HyperDriveConfigException HyperDriveException ModelNotFoundException
        ModelPathNotFoundException ProjectSystemException RunConfigurationException RunEnvironmentException
        SnapshotException TrainingException UserErrorException WebserviceException
    """,
    "azureml.exceptions._azureml_exception": """
        ActivityFailedException AuthenticationException AzureMLException ComputeTargetException
        ExperimentExecutionException ModelNotFoundException ModelPathNotFoundException ProjectSystemException
        RunConfigurationException RunEnvironmentException SnapshotException TrainingException UserErrorException
        WebserviceException
    """,
    "azureml.mlflow": "",
    "azureml.telemetry": "set_diagnostics_collection",
    "azureml.tensorboard": "Tensorboard",
    "azureml.tensorboard.export": "export_to_tensorboard",
    "azureml.tensorboard.tensorboard": "Tensorboard",
    "azureml.train": "",
    "azureml.train._distributed_training": "Gloo Mpi Nccl ParameterServer",
    "azureml.train.dnn": "Chainer Gloo Mpi Nccl ParameterServer PyTorch TensorFlow",
    "azureml.train.estimator": "Estimator Gloo Mpi Nccl ParameterServer",
    "azureml.train.hyperdrive": """
        BanditPolicy BayesianParameterSampling EarlyTerminationPolicy GridParameterSampling HyperDriveConfig
        HyperDriveRun HyperDriveRunConfig MedianStoppingPolicy NoTerminationPolicy PrimaryMetricGoal
        RandomParameterSampling TruncationSelectionPolicy choice lognormal loguniform normal qlognormal
        qloguniform qnormal quniform randint uniform
    """,
    "azureml.train.hyperdrive.parameter_expressions": """
        choice lognormal loguniform normal qlognormal qloguniform qnormal quniform randint uniform
    """,
    "azureml.train.hyperdrive.policy": """
        BanditPolicy EarlyTerminationPolicy MedianStoppingPolicy NoTerminationPolicy TruncationSelectionPolicy
    """,
    "azureml.train.hyperdrive.run": "Experiment HyperDriveConfig HyperDriveRun PrimaryMetricGoal Run Workspace",
    "azureml.train.hyperdrive.runconfig": "HyperDriveConfig HyperDriveRunConfig PrimaryMetricGoal Run ScriptRunConfig",
    "azureml.train.hyperdrive.sampling": """
        BayesianParameterSampling GridParameterSampling HyperParameterSampling RandomParameterSampling
    """,
    "azureml.train.sklearn": "SKLearn",
    "azureml.train.widgets": "RunDetails",
    "azureml.widgets": "RunDetails",
    "azureml.widgets.run_details": "RunDetails",
}

# module of Runyard -> its names; `v1_name=runyard_name` where they differ
LOCATIONS = {
    "runyard.errors": """
        ActivityFailedException AuthenticationException=UserErrorException AzureMLException=RunyardException
        ComputeTargetException ExperimentExecutionException HyperDriveConfigException HyperDriveException
        ModelNotFoundException ModelPathNotFoundException ProjectSystemException=UserErrorException
        RunConfigurationException RunEnvironmentException SnapshotException TrainingException UserErrorException
        WebserviceException
    """,
    "runyard.sdk.data.base": "AbstractDataset",
    "runyard.sdk.compute.amlcompute_status": "AmlComputeStatus",
    "runyard.sdk.core.authentication": """
        AzureCliAuthentication InteractiveLoginAuthentication MsiAuthentication ServicePrincipalAuthentication
        TokenAuthentication
    """,
    "runyard.scoring.rawhttp": "AMLRequest AMLResponse rawhttp",
    "runyard.sdk.azureml.keyvault": "Keyvault",
    "runyard.sdk.azureml.module_finder": "VERSION",
    "runyard.sdk.training.chainer": "Chainer",
    "runyard.sdk.compute.attached": "RemoteCompute",
    "runyard.sdk.compute.target": "ComputeTarget",
    "runyard.sdk.compute.amlcompute": "AmlCompute BatchAiCompute DsvmCompute",
    "runyard.sdk.compute.hdinsight": "HDInsightCompute",
    "runyard.sdk.environment.conda_dependencies": "CondaDependencies",
    "runyard.sdk.data.reference": "DataPath DataPathComputeBinding DataReference",
    "runyard.sdk.data.dataset": "Dataset",
    "runyard.sdk.data.factory": "DataType FileDatasetFactory TabularDatasetFactory",
    "runyard.sdk.data.consumption": "DatasetConsumptionConfig",
    "runyard.sdk.data.datastore": "AzureBlobDatastore AzureDataLakeGen2Datastore",
    "runyard.sdk.data.registry": "Datastore",
    "runyard.sdk.training.distributed": """
        Gloo Mpi MpiConfiguration Nccl ParameterServer PyTorchConfiguration TensorflowConfiguration
    """,
    "runyard.sdk.environment.environment": "Environment",
    "runyard.sdk.environment.sections": "ContainerRegistry DockerSection PythonSection SparkSection",
    "runyard.sdk.training.estimator": "Estimator",
    "runyard.sdk.core.experiment": "Experiment",
    "runyard.sdk.data.file_dataset": "FileDataset",
    "runyard.sdk.training.frameworks": "PyTorch SKLearn TensorFlow",
    "runyard.sdk.hyperdrive.parameter_expressions": """
        choice lognormal loguniform normal qlognormal qloguniform qnormal quniform randint uniform
    """,
    "runyard.sdk.hyperdrive.policy": """
        BanditPolicy EarlyTerminationPolicy MedianStoppingPolicy NoTerminationPolicy TruncationSelectionPolicy
    """,
    "runyard.sdk.hyperdrive.run": "HyperDriveRun",
    "runyard.sdk.hyperdrive.runconfig": "HyperDriveConfig HyperDriveRunConfig PrimaryMetricGoal",
    "runyard.sdk.hyperdrive.sampling": """
        BayesianParameterSampling GridParameterSampling HyperParameterSampling RandomParameterSampling
    """,
    "runyard.sdk.model.image": "ContainerImage Image",
    "runyard.sdk.webservice.inference": "InferenceConfig",
    "runyard.sdk.model.model": "Model",
    "runyard.sdk.run.offline_run": "_OfflineRun=OfflineRun",
    "runyard.sdk.model.resources": "ResourceConfiguration",
    "runyard.sdk.run.run": "Run",
    "runyard.sdk.training.run_configuration": """
        AmlComputeConfiguration DEFAULT_CPU_IMAGE DEFAULT_GPU_IMAGE DataReferenceConfiguration
        DockerConfiguration HistoryConfiguration RunConfiguration
    """,
    "runyard.sdk.run.script_run": "ScriptRun",
    "runyard.sdk.training.script_run_config": "ScriptRunConfig",
    "runyard.sdk.data.tabular_dataset": "TabularDataset",
    "runyard.sdk.azureml.telemetry": "set_diagnostics_collection",
    "runyard.sdk.notebook.tensorboard": "Tensorboard",
    "runyard.sdk.notebook.tensorboard_export": "export_to_tensorboard",
    "runyard.sdk.webservice.webservice": "Webservice",
    "runyard.sdk.webservice.kinds": "AciWebservice AksWebservice LocalWebservice",
    "runyard.sdk.notebook.widget.details": "RunDetails",
    "runyard.sdk.core.workspace": "Workspace",
}
