"""The models as scikit-learn estimators: pipelines, searches, cross-validation.

>>> from scant.sklearn import GPzRegressor
>>> model = GPzRegressor(n_basis=50, random_state=1).fit(X_train, y_train)  # NaN: missing
>>> mean, std = model.predict(X_test, return_std=True)

Each trains a model of `scant.models` by its trainer, with the defaults of the study where it is at
home, until the ELBO comes to rest; `model_` is the model itself. All pass scikit-learn's own
checks of estimators. Importing this package imports torch.

MTGPA is none of them: scikit-learn wants as many columns at prediction as at fit, of one meaning
each, and what MTGPA is for is to learn from boxes or weighted sets (2 d columns, or 2 d + 1 a
piece) and to predict at points (d columns); a scaler before it would tear a support's corners
apart. Use `scant.models.mtgpa.model.MTGPA`.
"""

from scant.sklearn.dfgp import DFGPClassifier, DFGPRegressor
from scant.sklearn.gpz import GPzRegressor
from scant.sklearn.laplace import LaplaceGPClassifier
from scant.sklearn.mogp_ar import MOGPARClassifier
from scant.sklearn.sclvm import SCLVMClassifier

__all__ = [
    "DFGPClassifier",
    "DFGPRegressor",
    "GPzRegressor",
    "LaplaceGPClassifier",
    "MOGPARClassifier",
    "SCLVMClassifier",
]
