"""Digits with torch's DistributedDataParallel. Every process takes a share of each global batch."""

import argparse
import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel

from runyard import Run

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=64, help="over all processes together")
parser.add_argument("--lr", type=float, default=0.5)
args = parser.parse_args()

run = Run.get_context()
world = int(os.environ.get("WORLD_SIZE", "1"))
rank = int(os.environ.get("RANK", "0"))
if world > 1:
    dist.init_process_group("gloo")  # env://: the yard sets MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE

torch.manual_seed(0)  # the same initial weights and order of batches on all ranks
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16.0, dtype=torch.float32), torch.tensor(labels)
model: torch.nn.Module = torch.nn.Linear(64, 10)
if world > 1:
    model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
loss_of = torch.nn.CrossEntropyLoss()

for _epoch in range(args.epochs):
    for batch in torch.randperm(len(x)).split(args.batch_size):
        if len(batch) < args.batch_size:
            continue  # the shares of a global batch must be equal, or the mean of their means would be wrong
        share = batch.chunk(world)[rank]
        optimizer.zero_grad()
        loss = loss_of(model(x[share]), y[share])
        loss.backward()  # averages the gradients over all processes
        optimizer.step()
    with torch.no_grad():
        whole = loss_of(model(x), y).item()
    run.log(f"loss_of_rank_{rank}", whole)
    if rank == 0:
        run.log("loss", whole)
        print(f"loss {whole:.6f}")

if rank == 0:
    with torch.no_grad():
        run.log("accuracy", (model(x).argmax(1) == y).float().mean().item())
    torch.save(model.state_dict(), "outputs/model.pt")
if world > 1:
    dist.barrier()  # gloo aborts a process whose peers exit while it communicates
    dist.destroy_process_group()
