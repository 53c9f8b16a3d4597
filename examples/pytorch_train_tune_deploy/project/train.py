"""Classifies handwritten digits with a small convolutional network."""

import argparse
from pathlib import Path

import numpy as np
import torch
from azureml.core import Run
from net import Net

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", required=True, help="where digits.npz is")
parser.add_argument("--num_epochs", type=int, default=8)
parser.add_argument("--learning_rate", type=float, default=0.1)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--onnx", action="store_true", help="write the model in the format of ONNX, too")
args = parser.parse_args()

run = Run.get_context()
run.log("lr", args.learning_rate)
run.log("momentum", args.momentum)

data = np.load(Path(args.data_dir) / "digits.npz")
images, labels = torch.tensor(data["images"]), torch.tensor(data["labels"])
train, validation = slice(0, 1400), slice(1400, None)

torch.manual_seed(0)
torch.set_num_threads(1)  # for a net this small, several are slower
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=args.learning_rate, momentum=args.momentum)
loss_of = torch.nn.CrossEntropyLoss()
best = 0.0
Path("outputs").mkdir(exist_ok=True)
for epoch in range(args.num_epochs):
    for batch in torch.randperm(1400).split(50):
        optimizer.zero_grad()
        loss = loss_of(net(images[train][batch]), labels[train][batch])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (net(images[validation]).argmax(1) == labels[validation]).float().mean().item()
    if accuracy >= best:
        best = accuracy
        torch.save(net.state_dict(), "outputs/model.pt")
    run.log("best_val_acc", best)  # the primary metric of the sweep
    print(f"epoch {epoch + 1:2}  loss {loss.item():.4f}  accuracy {accuracy:.4f}")

if args.onnx:
    net.load_state_dict(torch.load("outputs/model.pt"))
    net.eval()
    batch = torch.export.Dim("batch")
    torch.onnx.export(
        net,
        (images[:2],),
        "outputs/model.onnx",
        input_names=["images"],
        output_names=["scores"],
        dynamic_shapes=({0: batch},),
        external_data=False,  # one file
    )
