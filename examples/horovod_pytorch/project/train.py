"""Digits with PyTorch and Horovod, which the yard builds."""

import argparse
from pathlib import Path

import horovod.torch as hvd
import numpy as np
import torch
from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", required=True, help="where digits.npz is")
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=64, help="over all ranks together")
parser.add_argument("--learning-rate", type=float, default=0.5)
args = parser.parse_args()

hvd.init()
run = Run.get_context()
torch.manual_seed(0)  # the same order of batches on all ranks
data = np.load(Path(args.data_dir) / "digits.npz")
x, y = torch.tensor(data["images"]), torch.tensor(data["labels"])
model = torch.nn.Linear(64, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
loss_of = torch.nn.CrossEntropyLoss()

for _epoch in range(args.epochs):
    for batch in torch.randperm(len(x)).split(args.batch_size):
        if len(batch) < args.batch_size:
            continue  # the shares of a global batch must be equal, or the mean of their means would be wrong
        share = batch.chunk(hvd.size())[hvd.rank()]
        optimizer.zero_grad()
        loss = loss_of(model(x[share]), y[share])
        loss.backward()
        optimizer.step()  # after the gradients were averaged over all ranks
    with torch.no_grad():
        whole = loss_of(model(x), y).item()
    run.log(f"loss_of_rank_{hvd.rank()}", whole)
    if hvd.rank() == 0:
        run.log("loss", whole)
        print(f"loss {whole:.6f}")

if hvd.rank() == 0:
    with torch.no_grad():
        run.log("accuracy", (model(x).argmax(1) == y).float().mean().item())
    run.log("ranks", hvd.size())
    torch.save(model.state_dict(), "outputs/model.pt")
