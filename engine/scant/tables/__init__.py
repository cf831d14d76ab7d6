"""Reading and checking of users' tables and images, without PyTorch."""
