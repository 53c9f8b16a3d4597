"""Classifies handwritten digits (scikit-learn's 1,797 images) with plain PyTorch, and logs its metrics."""

import argparse
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from runyard import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--epochs", type=int, default=30)
parser.add_argument("--verbose", action="store_true")
args = parser.parse_args()

run = Run.get_context()  # outside of a run it prints metrics, so the script also works on its own
torch.manual_seed(0)

images, labels = load_digits(return_X_y=True)
split = train_test_split(images / 16.0, labels, test_size=0.25, random_state=0)
x_train, x_test = (torch.tensor(x, dtype=torch.float32) for x in split[:2])
y_train, y_test = (torch.tensor(y) for y in split[2:])

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
loss_of = torch.nn.CrossEntropyLoss()

run.log("lr", args.lr)
for epoch in range(args.epochs):
    for batch in torch.randperm(len(x_train)).split(64):
        optimizer.zero_grad()
        loss = loss_of(model(x_train[batch]), y_train[batch])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    run.log("loss", loss.item())
    run.log("accuracy", accuracy)
    if args.verbose and epoch % 5 == 4:
        print(f"epoch {epoch + 1:3}  loss {loss.item():.4f}  accuracy {accuracy:.4f}")

Path("outputs").mkdir(exist_ok=True)  # exists already in a run
torch.save(model.state_dict(), "outputs/model.pt")  # files in outputs/ are stored with the run
print(f"{accuracy:.1%} of {len(x_test)} unseen digits were read right")
