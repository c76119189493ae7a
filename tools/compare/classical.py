"""Classical models, trained here and exported by their own converters: does hoist predict like the library? Development
only.

    tools/compare/setup classical          # scikit-learn, LightGBM, XGBoost, CatBoost and converters, in build/classical
    build/classical/bin/python tools/compare/classical.py --count 500             # programs interpreted, without a device
    build/classical/bin/python tools/compare/classical.py --count 50 --target native
    build/classical/bin/python tools/compare/classical.py --seed 17 --count 1     # the model of one seed again

A seed draws a library, an estimator with its parameters, labels (integers or strings), 1 to 30 features, f32 or f64 inputs,
missing values if the estimator supports them, and a batch of 1 or more rows. Labels and scores of the library are the
expected results; rows whose two best scores are too close for f32 are left out. onnxruntime is the witness: a
difference is *hoist's* if onnxruntime agrees with the library, *converted* if it agrees with hoist (the exported model
differs from the library), *disputed* if all three differ, *unwitnessed* if it cannot run the model. The exit code is 1
if a difference is hoist's or a model is refused.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import numpy as np
import onnx
import onnxruntime

from engines import HOIST, WORK

FOLDER = WORK / "classical"
RTOL, ATOL = 1e-3, 1e-4
ROWS = 40  # training rows per class
Draw = np.random.Generator


@dataclass
class Data:
    """The training data and test data of an estimator."""
    x: np.ndarray
    y: np.ndarray
    asked: np.ndarray

    @property
    def features(self) -> int:
        return self.x.shape[1]


@dataclass
class Trained:
    model: onnx.ModelProto
    expected: list[np.ndarray | None]  # expected value of each output; None: the library has no such output
    asked: np.ndarray
    regression: bool


@dataclass
class Kind:
    """An estimator: its construction, and its possible inputs."""
    library: str
    name: str
    make: Callable[[Draw, int], Any]
    task: str  # binary, classes, regression or transform
    missing: bool = False
    positive: bool = False  # features are not negative
    whole: bool = False  # features are small integers
    double: bool = True  # may have f64 inputs
    options: dict[str, Any] = field(default_factory=dict)  # of the converter
    zip_map: bool = True  # the converter can leave ZipMap out
    most_features: int = 30


# ---- Data --------------------------------------------------------------------------------------------------------------

def draw_data(draw: Draw, kind: Kind, classes: int) -> Data:
    features = int(draw.choice([n for n in (1, 2, 3, 5, 8, 13, 30) if n <= kind.most_features]))
    rows = ROWS * max(classes, 2)
    x = draw.standard_normal((rows, features))
    weights = draw.standard_normal((features, max(classes, 1)))
    scores = x @ weights + 0.5 * np.sin(3 * x) @ weights + 0.3 * draw.standard_normal((rows, max(classes, 1)))
    if kind.positive:
        x = np.abs(x)
    if kind.whole:
        x = np.clip(np.floor(np.abs(2 * x)), 0, 4)
    x = x.astype(np.float32)
    y: np.ndarray = np.abs(scores[:, 0]) + 0.1
    if classes == 2:
        y = (scores[:, 0] > np.quantile(scores[:, 0], draw.choice([0.5, 0.2, 0.8]))).astype(np.int64)
    elif classes > 2:
        y = scores.argmax(1)
        y[:classes] = np.arange(classes)
    asked = x[draw.integers(0, rows, int(draw.choice([1, 2, 7, 16, 33])))].copy()
    if not kind.whole:
        asked += np.where(draw.random(asked.shape) < 0.5, 0, np.abs(0.1 * draw.standard_normal(asked.shape))).astype(np.float32)
    if kind.missing and draw.random() < 0.6:
        for array in (x, asked):
            array[draw.random(array.shape) < 0.15] = np.nan
    return Data(x, y, asked)


def labelled(draw: Draw, y: np.ndarray) -> np.ndarray:
    """The labels 0, 1, ... replaced by other integers or strings."""
    names = draw.choice(["as they are", "numbers", "strings"], p=[0.5, 0.25, 0.25])
    if names == "numbers":
        return 3 * y + 2
    return np.array([f"class {value}" for value in y]) if names == "strings" else y


# ---- Estimators --------------------------------------------------------------------------------------------------------

SCIKIT = "scikit-learn"


def of_trees(draw: Draw) -> dict[str, Any]:
    return dict(max_depth=int(draw.integers(1, 6)), random_state=0)


def of_ensembles(draw: Draw) -> dict[str, Any]:
    return dict(n_estimators=int(draw.integers(1, 12)), **of_trees(draw))


def scikit_classifiers() -> list[Kind]:
    from sklearn import (calibration, discriminant_analysis, ensemble, linear_model, multiclass, naive_bayes, neighbors,
                         neural_network, pipeline, preprocessing, svm, tree)
    out: list[Kind] = []

    def both(name: str, make: Callable[[Draw, int], Any], **given: Any) -> None:
        out.extend(Kind(SCIKIT, name, make, task, **given) for task in ("binary", "classes"))

    def binary(name: str, make: Callable[[Draw, int], Any]) -> None:
        out.append(Kind(SCIKIT, name, make, "binary"))

    logistic = lambda draw: linear_model.LogisticRegression(C=float(draw.choice([0.1, 1, 10])), max_iter=500)
    both("DecisionTreeClassifier", lambda d, _: tree.DecisionTreeClassifier(**of_trees(d)))
    both("ExtraTreeClassifier", lambda d, _: tree.ExtraTreeClassifier(**of_trees(d)))
    both("RandomForestClassifier", lambda d, _: ensemble.RandomForestClassifier(**of_ensembles(d)))
    both("ExtraTreesClassifier", lambda d, _: ensemble.ExtraTreesClassifier(**of_ensembles(d)))
    both("GradientBoostingClassifier", lambda d, _: ensemble.GradientBoostingClassifier(
        init="zero" if d.random() < 0.3 else None, **of_ensembles(d)))
    binary("GradientBoostingClassifier(exponential)", lambda d, _: ensemble.GradientBoostingClassifier(
        loss="exponential", **of_ensembles(d)))
    both("HistGradientBoostingClassifier", lambda d, _: ensemble.HistGradientBoostingClassifier(
        max_iter=int(d.integers(1, 12)), min_samples_leaf=5, random_state=0), missing=True)
    both("AdaBoostClassifier", lambda d, _: ensemble.AdaBoostClassifier(n_estimators=int(d.integers(1, 8)), random_state=0))
    both("BaggingClassifier", lambda d, _: ensemble.BaggingClassifier(n_estimators=int(d.integers(1, 6)), random_state=0))
    both("VotingClassifier", lambda d, _: ensemble.VotingClassifier(
        [("a", logistic(d)), ("b", tree.DecisionTreeClassifier(**of_trees(d)))], flatten_transform=False,
        voting=str(d.choice(["soft", "hard"]))))
    both("StackingClassifier", lambda d, _: ensemble.StackingClassifier(
        [("a", logistic(d)), ("b", tree.DecisionTreeClassifier(**of_trees(d)))]))
    both("LogisticRegression", lambda d, _: logistic(d))
    both("LogisticRegression(raw)", lambda d, _: logistic(d), options={"raw_scores": True})
    binary("LogisticRegression(liblinear)", lambda d, _: linear_model.LogisticRegression(solver="liblinear"))
    both("LogisticRegressionCV", lambda d, _: linear_model.LogisticRegressionCV(Cs=2, max_iter=300))
    both("SGDClassifier", lambda d, _: linear_model.SGDClassifier(
        loss=str(d.choice(["log_loss", "hinge", "modified_huber"])), random_state=0))
    both("Perceptron", lambda d, _: linear_model.Perceptron())
    both("RidgeClassifier", lambda d, _: linear_model.RidgeClassifier())
    both("LinearSVC", lambda d, _: svm.LinearSVC(), zip_map=False)
    for kernel in ("linear", "poly", "rbf", "sigmoid"):
        both(f"SVC({kernel})", lambda d, _, kernel=kernel: svm.SVC(kernel=kernel, C=float(d.choice([0.5, 5]))))
    both("NuSVC", lambda d, _: svm.NuSVC(nu=0.1))
    both("OneVsRestClassifier", lambda d, _: multiclass.OneVsRestClassifier(logistic(d)))
    both("CalibratedClassifierCV", lambda d, _: calibration.CalibratedClassifierCV(
        svm.LinearSVC(), cv=2, method=str(d.choice(["sigmoid", "isotonic"]))))
    both("GaussianNB", lambda d, _: naive_bayes.GaussianNB())
    both("BernoulliNB", lambda d, _: naive_bayes.BernoulliNB(binarize=0.5))
    both("MultinomialNB", lambda d, _: naive_bayes.MultinomialNB(), positive=True)
    both("ComplementNB", lambda d, _: naive_bayes.ComplementNB(), positive=True)
    both("KNeighborsClassifier", lambda d, _: neighbors.KNeighborsClassifier(int(d.integers(1, 6))))
    both("LinearDiscriminantAnalysis", lambda d, _: discriminant_analysis.LinearDiscriminantAnalysis())
    both("QuadraticDiscriminantAnalysis", lambda d, _: discriminant_analysis.QuadraticDiscriminantAnalysis(
        reg_param=0.2))
    both("MLPClassifier", lambda d, _: neural_network.MLPClassifier((int(d.integers(2, 20)),), max_iter=60))
    both("pipeline", lambda d, _: pipeline.make_pipeline(preprocessing.StandardScaler(), logistic(d)))
    return out


def scikit_regressors() -> list[Kind]:
    from sklearn import ensemble, gaussian_process, linear_model, neighbors, neural_network, svm, tree
    makers: dict[str, Callable[[Draw, int], Any]] = {
        "LinearRegression": lambda d, _: linear_model.LinearRegression(),
        "Ridge": lambda d, _: linear_model.Ridge(), "Lasso": lambda d, _: linear_model.Lasso(0.01),
        "ElasticNet": lambda d, _: linear_model.ElasticNet(0.01),
        "BayesianRidge": lambda d, _: linear_model.BayesianRidge(),
        "HuberRegressor": lambda d, _: linear_model.HuberRegressor(max_iter=300),
        "PoissonRegressor": lambda d, _: linear_model.PoissonRegressor(),
        "TweedieRegressor": lambda d, _: linear_model.TweedieRegressor(power=1.5, link="log"),
        "SGDRegressor": lambda d, _: linear_model.SGDRegressor(random_state=0),
        "LinearSVR": lambda d, _: svm.LinearSVR(), "NuSVR": lambda d, _: svm.NuSVR(),
        "SVR": lambda d, _: svm.SVR(kernel=str(d.choice(["linear", "poly", "rbf", "sigmoid"]))),
        "DecisionTreeRegressor": lambda d, _: tree.DecisionTreeRegressor(**of_trees(d)),
        "RandomForestRegressor": lambda d, _: ensemble.RandomForestRegressor(**of_ensembles(d)),
        "ExtraTreesRegressor": lambda d, _: ensemble.ExtraTreesRegressor(**of_ensembles(d)),
        "GradientBoostingRegressor": lambda d, _: ensemble.GradientBoostingRegressor(**of_ensembles(d)),
        "AdaBoostRegressor": lambda d, _: ensemble.AdaBoostRegressor(n_estimators=3, random_state=0),
        "BaggingRegressor": lambda d, _: ensemble.BaggingRegressor(n_estimators=3, random_state=0),
        "KNeighborsRegressor": lambda d, _: neighbors.KNeighborsRegressor(int(d.integers(1, 6))),
        "MLPRegressor": lambda d, _: neural_network.MLPRegressor(
            hidden_layer_sizes=(int(d.integers(2, 20)),), max_iter=60),
        "GaussianProcessRegressor": lambda d, _: gaussian_process.GaussianProcessRegressor(
            gaussian_process.kernels.RBF(2.0), alpha=0.5, optimizer=None),
        "IsolationForest": lambda d, _: ensemble.IsolationForest(n_estimators=int(d.integers(1, 6)), random_state=0),
        "OneClassSVM": lambda d, _: svm.OneClassSVM(nu=0.3)}
    return [Kind(SCIKIT, name, make, "regression") for name, make in makers.items()] + [
        Kind(SCIKIT, "HistGradientBoostingRegressor", lambda d, _: ensemble.HistGradientBoostingRegressor(
            max_iter=int(d.integers(1, 12)), min_samples_leaf=5, loss=str(d.choice(["squared_error", "poisson"]))), "regression", missing=True)]


def scikit_transforms() -> list[Kind]:
    from sklearn import cluster, decomposition, feature_selection, impute, mixture, preprocessing
    rows: list[tuple[str, Callable[[Draw, int], Any], dict[str, Any]]] = [
        ("StandardScaler", lambda d, _: preprocessing.StandardScaler(with_mean=bool(d.integers(2))), {}),
        ("MinMaxScaler", lambda d, _: preprocessing.MinMaxScaler(), {}),
        ("MaxAbsScaler", lambda d, _: preprocessing.MaxAbsScaler(), {}),
        ("RobustScaler", lambda d, _: preprocessing.RobustScaler(), {}),
        ("Normalizer", lambda d, _: preprocessing.Normalizer(str(d.choice(["l1", "l2", "max"]))), {}),
        ("Binarizer", lambda d, _: preprocessing.Binarizer(threshold=0.25), {}),
        ("PowerTransformer", lambda d, _: preprocessing.PowerTransformer(), {}),
        ("KBinsDiscretizer", lambda d, _: preprocessing.KBinsDiscretizer(
            3, encode=str(d.choice(["ordinal", "onehot-dense"])), quantile_method="averaged_inverted_cdf"), {}),
        ("PolynomialFeatures", lambda d, _: preprocessing.PolynomialFeatures(2), {"most_features": 8}),
        ("OneHotEncoder", lambda d, _: preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore"),
         {"whole": True}),
        ("OrdinalEncoder", lambda d, _: preprocessing.OrdinalEncoder(), {"whole": True}),
        ("SimpleImputer", lambda d, _: impute.SimpleImputer(strategy=str(d.choice(["mean", "median"]))),
         {"missing": True}),
        ("PCA", lambda d, _: decomposition.PCA(), {}), ("KMeans", lambda d, _: cluster.KMeans(3, n_init=1), {}),
        ("GaussianMixture", lambda d, _: mixture.GaussianMixture(2, random_state=0), {}),
        ("VarianceThreshold", lambda d, _: feature_selection.VarianceThreshold(0.1), {})]
    return [Kind(SCIKIT, name, make, "transform", **given) for name, make, given in rows]


def boosted_kinds() -> list[Kind]:
    import catboost
    import lightgbm
    import xgboost
    out: list[Kind] = []
    light = lambda d: dict(n_estimators=int(d.integers(1, 12)), num_leaves=int(d.choice([2, 4, 15])), min_child_samples=3,
                           verbose=-1, random_state=0)
    extreme = lambda d: dict(n_estimators=int(d.integers(1, 12)), max_depth=int(d.integers(1, 5)), random_state=0)
    cat = lambda d: dict(iterations=int(d.integers(1, 10)), depth=int(d.integers(1, 5)), verbose=0, random_seed=0,
                         allow_writing_files=False)

    def add(library: str, task: str, name: str, make: Callable[[Draw, int], Any], **given: Any) -> None:
        # Converters of LightGBM and XGBoost take f32.
        out.append(Kind(library, name, make, task, missing=given.pop("missing", True), double=False, **given))

    for boosting in ("gbdt", "dart", "rf"):
        bagged = dict(bagging_freq=1, bagging_fraction=0.7) if boosting == "rf" else {}
        for task in ("binary", "classes"):
            add("LightGBM", task, f"LGBMClassifier({boosting})", lambda d, _, b=boosting, g=bagged: lightgbm.LGBMClassifier(
                boosting_type=b, **g, **light(d)))
    add("LightGBM", "classes", "LGBMClassifier(multiclassova)", lambda d, _: lightgbm.LGBMClassifier(
        objective="multiclassova", **light(d)))
    add("LightGBM", "binary", "LGBMClassifier(whole features)", lambda d, _: lightgbm.LGBMClassifier(**light(d)), whole=True)
    for objective in ("regression", "regression_l1", "huber", "quantile", "poisson", "gamma", "tweedie"):
        add("LightGBM", "regression", f"LGBMRegressor({objective})", lambda d, _, o=objective: lightgbm.LGBMRegressor(
            objective=o, **light(d)))
    for task in ("binary", "classes"):
        add("XGBoost", task, "XGBClassifier", lambda d, _: xgboost.XGBClassifier(**extreme(d)))
        add("XGBoost", task, "XGBRFClassifier", lambda d, _: xgboost.XGBRFClassifier(**extreme(d)))
    add("XGBoost", "binary", "XGBClassifier(base_score)", lambda d, _: xgboost.XGBClassifier(
        base_score=float(d.choice([0.1, 0.5, 0.9])), **extreme(d)))
    add("XGBoost", "regression", "XGBRegressor(base_score)", lambda d, _: xgboost.XGBRegressor(
        base_score=float(d.choice([-1.0, 0.0, 3.0])), **extreme(d)))
    for objective in ("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "count:poisson", "reg:gamma",
                      "reg:tweedie"):
        add("XGBoost", "regression", f"XGBRegressor({objective})", lambda d, _, o=objective: xgboost.XGBRegressor(
            objective=o, **extreme(d)))
    add("CatBoost", "binary", "CatBoostClassifier", lambda d, _: catboost.CatBoostClassifier(
        boost_from_average=bool(d.integers(2)), **cat(d)))
    add("CatBoost", "classes", "CatBoostClassifier", lambda d, _: catboost.CatBoostClassifier(**cat(d)))
    for loss in ("RMSE", "MAE", "Quantile"):
        add("CatBoost", "regression", f"CatBoostRegressor({loss})", lambda d, _, loss=loss: catboost.CatBoostRegressor(
            loss_function=loss, **cat(d)))
    return out


# ---- Training and export -----------------------------------------------------------------------------------------------

def exported(kind: Kind, estimator: Any, double: bool, features: int, path: Path) -> onnx.ModelProto:
    if kind.library == "CatBoost":
        estimator.save_model(str(path), format="onnx")
        return without_zip_map(onnx.load(path))
    import skl2onnx.common.data_types as types
    if kind.library == "scikit-learn":
        import skl2onnx
        tensor = types.DoubleTensorType if double else types.FloatTensorType
        options = dict(kind.options)
        if kind.task in ("binary", "classes") and kind.zip_map:
            options["zipmap"] = False
        if hasattr(estimator, "_baseline_prediction"):  # the converter expects one dimension
            estimator._baseline_prediction = estimator._baseline_prediction.ravel()
        return skl2onnx.to_onnx(estimator, initial_types=[("x", tensor([None, features]))],
                                options={id(estimator): options} if options else None)
    import onnxmltools
    import onnxmltools.convert.common.data_types as tools
    convert = onnxmltools.convert_lightgbm if kind.library == "LightGBM" else onnxmltools.convert_xgboost
    given = {"zipmap": False} if kind.library == "LightGBM" and kind.task in ("binary", "classes") else {}
    return convert(estimator, initial_types=[("x", tools.FloatTensorType([None, features]))], **given)


def without_zip_map(model: onnx.ModelProto) -> onnx.ModelProto:
    """The scores as the tensor from which ZipMap makes a list of maps."""
    for node in [node for node in model.graph.node if node.op_type == "ZipMap"]:
        for output in model.graph.output:
            if output.name == node.output[0]:
                output.CopyFrom(onnx.helper.make_tensor_value_info(node.input[0], onnx.TensorProto.FLOAT, None))
        model.graph.node.remove(node)
    return model


def of_rows(model: onnx.ModelProto, rows: int) -> onnx.ModelProto:
    """The same for `rows` rows."""
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[0].dim_value = rows
    floats = {name for node in model.graph.node if node.op_type.startswith("TreeEnsemble") for name in node.output}
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
        if value.name in floats and value.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT  # the converter declares the input's type
    return model


def predicted(kind: Kind, estimator: Any, asked: np.ndarray) -> list[np.ndarray | None]:
    if kind.task == "transform":
        if hasattr(estimator, "transform") and not hasattr(estimator, "predict"):
            return [np.asarray(estimator.transform(asked))]
        return [np.asarray(estimator.predict(asked)), None]
    labels = np.asarray(estimator.predict(asked)).reshape(-1)
    if kind.task == "regression":
        return [labels, None]
    try:
        return [labels, None if "raw_scores" in kind.options else np.asarray(estimator.predict_proba(asked))]
    except AttributeError:
        return [labels, None]


def clear_rows(kind: Kind, estimator: Any, asked: np.ndarray) -> np.ndarray:
    """Drops rows whose two best scores are nearly equal."""
    if kind.task not in ("binary", "classes"):
        return asked
    try:
        scores = np.asarray(estimator.predict_proba(asked), np.float64)
    except AttributeError:
        try:
            scores = np.asarray(estimator.decision_function(asked), np.float64)
        except AttributeError:
            return asked
    if scores.ndim == 1:
        scores = np.stack([-scores, scores], 1)
    best = np.sort(scores, 1)
    keep = best[:, -1] - best[:, -2] > 1e-5
    return asked[keep] if keep.any() else asked[:0]


def trained(draw: Draw, kind: Kind) -> Trained | str:
    """A model with the library's predictions, or the reason why there is none."""
    classes = {"binary": 2, "classes": int(draw.integers(3, 6)), "regression": 0, "transform": 0}[kind.task]
    data = draw_data(draw, kind, classes)
    y = labelled(draw, data.y) if classes and kind.library == "scikit-learn" else data.y
    try:
        estimator = kind.make(draw, classes).fit(data.x, y)
        double = kind.double and bool(draw.random() < 0.25)
        asked = clear_rows(kind, estimator, data.asked.astype(np.float64 if double else np.float32))
        if not len(asked):
            return "no row is clear"
        expected = predicted(kind, estimator, asked)
        model = exported(kind, estimator, double, data.features, FOLDER / "exported.onnx")
        return Trained(of_rows(model, len(asked)), expected, asked, kind.task == "regression")
    except Exception as error:  # each library has its own classes
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:120] if str(error).strip() else ''}"


# ---- Comparison --------------------------------------------------------------------------------------------------------

def close(found: np.ndarray, expected: np.ndarray) -> bool:
    if found.shape != expected.shape:
        return False
    if found.dtype.kind in "OUS" or expected.dtype.kind in "OUS":
        return bool((found.astype(str) == expected.astype(str)).all())
    return np.allclose(found.astype(np.float64), expected.astype(np.float64), RTOL, ATOL, equal_nan=True)


def write_case(folder: Path, case: Trained, outputs: list[np.ndarray]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(case.model, folder / "model.onnx")
    arrays = [("input", 0, case.model.graph.input[0].name, case.asked)]
    arrays += [("output", place, value.name, array) for place, (value, array) in enumerate(zip(case.model.graph.output, outputs))]
    for what, place, name, array in arrays:
        if array.dtype.kind in "US":
            array = array.astype(object)
        tensor = onnx.numpy_helper.from_array(np.asarray(array, order="C"), name)
        (data / f"{what}_{place}.pb").write_bytes(tensor.SerializeToString())


def witness(case: Trained) -> list[np.ndarray] | str:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return [np.asarray(value) for value in session.run(None, {case.model.graph.input[0].name: case.asked})]
    except Exception as error:  # the library's own classes
        return str(error).splitlines()[0][:160]


def wanted(case: Trained, theirs: list[np.ndarray] | str) -> list[np.ndarray] | None:
    """The library's predictions in the shapes and types of the model's outputs; outputs that the library lacks come
    from onnxruntime."""
    out = []
    columns = case.regression and isinstance(theirs, str)  # converters write [rows][1]
    for place, value in enumerate(case.model.graph.output):
        expected = case.expected[place] if place < len(case.expected) else None
        like = theirs[place] if not isinstance(theirs, str) else None
        if expected is None and like is None:
            return None
        if expected is None or (like is not None and expected.size != like.size):
            out.append(like)
        elif like is not None:
            out.append(expected.reshape(like.shape).astype(like.dtype))
        else:
            kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            numbers = expected.reshape(-1, 1) if columns else expected
            out.append(numbers if numbers.dtype.kind in "OUS" else numbers.astype(kind))
    return out


def verdicts(program: Path, folders: list[Path], options: list[str]) -> dict[str, str]:
    """The difference of hoist's result for each case; "" if it agrees."""
    if not folders:
        return {}
    answer = FOLDER / "answer.json"
    answer.unlink(missing_ok=True)
    command = [str(program), "test", *map(str, folders), "--json", str(answer), "--rtol", str(RTOL), "--atol", str(ATOL), *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=90 * len(folders))
        ended = f"ended with {done.returncode}: {done.stderr.strip()[-300:]}"
    except subprocess.TimeoutExpired:
        ended = "took longer than 90 s per model"
    if answer.exists():
        return {case["name"]: case.get("message", "") for case in json.loads(answer.read_text())["cases"]}
    if len(folders) == 1:
        return {folders[0].name: ended}
    half = len(folders) // 2
    return {**verdicts(program, folders[:half], options), **verdicts(program, folders[half:], options)}


def sum_of_terms(model: onnx.ModelProto) -> float:
    """An upper bound of the sum of the magnitudes of a support vector machine's terms, whose kernel function is at most 1."""
    total = 0.0
    for node in model.graph.node:
        given = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        if given.get("kernel_type") in (b"RBF", b"SIGMOID"):
            total += float(np.abs(given["coefficients"]).sum())
    return total


def is_rounding(message: str, outputs: list[np.ndarray], terms: float) -> bool:
    """True for the rounding of sums in f32 whose terms are far larger than some results. NuSVC has coefficients without a
    bound: one of its scores is 0.03, with terms that add up to 52,000."""
    found = re.search(r"largest error (\S+)$", message)
    numbers = [np.abs(array[np.isfinite(array)]).max(initial=0) for array in outputs if array.dtype.kind == "f"]
    most = max(ATOL * max(numbers, default=0), 2**-23 * terms)
    return found is not None and "label" not in message and float(found[1]) <= most


def explore(options: argparse.Namespace) -> tuple[dict[str, Counter], list[str]]:
    """The number of models of each library by verdict, and a line for each difference."""
    every = scikit_classifiers() + scikit_regressors() + scikit_transforms() + boosted_kinds()
    kinds = [kind for kind in every if options.only.lower() in f"{kind.library} {kind.name}".lower()]
    counts: dict[str, Counter] = {}
    lines: list[str] = []
    target = ["--target", options.target] if options.target else [] if options.device else ["--interpret"]
    cases: dict[str, tuple[Kind, Trained, list[np.ndarray] | str]] = {}

    def judge() -> None:
        folders = [FOLDER / name for name in cases]
        said = verdicts(options.hoist, folders, target)
        for name, (kind, case, theirs) in cases.items():
            message = said.get(name, "no answer")
            ours = wanted(case, theirs)
            verdict = "equal"
            if message and not is_rounding(message, ours, sum_of_terms(case.model)):
                verdict = "unwitnessed"
                if not isinstance(theirs, str):
                    sides = all(close(a, b) for a, b in zip(theirs, ours))
                    second = FOLDER / f"{name}_witness"
                    write_case(second, case, theirs)
                    verdict = "refused" if "differs" not in message else "hoist's" if sides else "disputed"
                    if verdict == "disputed" and not verdicts(options.hoist, [second], target)[second.name]:
                        verdict = "converted"
                lines.append(f"{verdict:11} {name} {kind.library} {kind.name} {kind.task} {list(case.asked.shape)} "
                             f"{case.asked.dtype}: {message[:200]}")
                print(lines[-1], flush=True)
            else:
                shutil.rmtree(FOLDER / name)
            counts.setdefault(kind.library, Counter())[verdict] += 1
        cases.clear()

    for seed in range(options.seed, options.seed + options.count):
        draw = np.random.default_rng(seed)
        kind = kinds[seed % len(kinds)] if options.every else kinds[int(draw.integers(len(kinds)))]
        case = trained(draw, kind)
        if isinstance(case, str):
            counts.setdefault(kind.library, Counter())["not exported"] += 1
            if options.verbose:
                print(f"not exported {seed} {kind.library} {kind.name} {kind.task}: {case}", flush=True)
            continue
        theirs = witness(case)
        outputs = wanted(case, theirs)
        if outputs is None:
            counts.setdefault(kind.library, Counter())["not exported"] += 1
            if options.verbose:
                print(f"onnxruntime  {seed} {kind.library} {kind.name} {kind.task}: {theirs}", flush=True)
            continue
        name = f"model_{seed}"
        write_case(FOLDER / name, case, outputs)
        cases[name] = (kind, case, theirs)
        if len(cases) == options.batch:
            judge()
    judge()
    return counts, lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hoist", type=Path, default=HOIST, help="the program (default: build/release/hoist)")
    parser.add_argument("--count", type=int, default=100, help="how many models")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--only", default="", metavar="TEXT", help="only libraries or estimators whose names contain this")
    parser.add_argument("--every", action="store_true", help="estimators in turn instead of at random")
    parser.add_argument("--batch", type=int, default=20, help="models in one process of hoist")
    parser.add_argument("--target", default="", help="the target of hoist test, for example native")
    parser.add_argument("--device", action="store_true", help="on the first OpenCL device")
    parser.add_argument("--verbose", action="store_true", help="also list models that were not exported, with the reason")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    FOLDER.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    counts, lines = explore(options)
    columns = ["equal", "hoist's", "refused", "converted", "disputed", "unwitnessed", "not exported"]
    print(f"{'library':14}" + "".join(f"{column:>14}" for column in columns))
    for library, found in sorted(counts.items()):
        print(f"{library:14}" + "".join(f"{found[column]:14}" for column in columns))
    print(f"{options.count} models in {time.monotonic() - start:.0f} s")
    return 1 if any(found["hoist's"] + found["refused"] for found in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
